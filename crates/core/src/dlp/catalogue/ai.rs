//! Vendors of models, and of what agents use with them.

use crate::dlp::kind::Kind;
use crate::dlp::tokens::alphabet::{
    ALNUM, CAPITAL_ALNUM, DOTTED, HEX, HEX_DASH, LETTERS, PADDED, SMALL_ALNUM, URL_SAFE, URL_SAFE_PADDED, WORD,
};
use crate::dlp::tokens::format::{Vendor, bare, begins, kinds, vendor};

pub(super) const KINDS: &[Kind] = &kinds::<{ VENDORS.len() }>(VENDORS);

pub(super) const VENDORS: &[Vendor] = &[
    vendor(
        "OPENAI_KEY",
        "OpenAI API key",
        "`sk-` and 16 or more letters and digits, `sk-proj-`, `sk-svcacct-`, `sk-admin-`; others copy the form",
        &[
            begins(&["sk-"]).run(ALNUM, 16).run(URL_SAFE, 0).digits(1),
            begins(&["sk-proj-", "sk-svcacct-", "sk-admin-", "sk-None-"]).run(URL_SAFE, 20).digits(1),
            begins(&["sk-"]).exactly(HEX_DASH, 36).digits(6),
            begins(&["sk-"]).run(URL_SAFE, 40).digits(4).mixed(),
            begins(&["sess-"]).run(ALNUM, 40).digits(1),
        ],
    ),
    vendor(
        "ANTHROPIC_KEY",
        "Anthropic key",
        "`sk-ant-` and 20 or more letters, digits, `-`, `_`",
        &[begins(&["sk-ant-"]).run(URL_SAFE, 20).digits(1)],
    ),
    vendor(
        "OPENROUTER_KEY",
        "OpenRouter API key",
        "`sk-or-v1-` and 64 hexadecimal digits",
        &[begins(&["sk-or-v1-", "sk-or-"]).run(ALNUM, 32).digits(1)],
    ),
    vendor(
        "GOOGLE_API_KEY",
        "Google API key",
        "`AIza` and 35 letters, digits, `-`, `_`, also in base64; `AQ.Ab` and 40 or more",
        &[
            begins(&["AIza"]).exactly(URL_SAFE, 35).digits(1),
            begins(&["AQ.Ab"]).run(URL_SAFE, 40).digits(1),
            begins(&["QUl6YVN5"]).exactly(ALNUM, 44).digits(1),
        ],
    ),
    vendor(
        "GOOGLE_OAUTH",
        "Google OAuth secret or token",
        "`GOCSPX-`, `ya29.` or `1//0`, and 20 or more letters, digits, `-`, `_`",
        &[
            begins(&["GOCSPX-"]).run(URL_SAFE, 24).digits(1),
            begins(&["ya29."]).run(DOTTED, 20).digits(1),
            begins(&["1//0"]).run(URL_SAFE, 40).digits(1),
        ],
    ),
    vendor(
        "HUGGINGFACE_TOKEN",
        "Hugging Face token",
        "`hf_` or `api_org_` and 34 letters",
        &[begins(&["hf_", "api_org_"]).exactly(LETTERS, 34)],
    ),
    vendor(
        "GROQ_KEY",
        "Groq API key",
        "`gsk_` and 52 letters and digits",
        &[begins(&["gsk_"]).run(ALNUM, 40).digits(1)],
    ),
    vendor(
        "XAI_KEY",
        "xAI API key",
        "`xai-` and 80 letters and digits",
        &[begins(&["xai-"]).run(URL_SAFE, 60).digits(1)],
    ),
    vendor(
        "PERPLEXITY_KEY",
        "Perplexity API key",
        "`pplx-` and 40 or more letters and digits",
        &[begins(&["pplx-"]).run(ALNUM, 40).digits(1)],
    ),
    vendor(
        "REPLICATE_TOKEN",
        "Replicate API token",
        "`r8_` and 37 letters and digits",
        &[begins(&["r8_"]).run(ALNUM, 37).digits(1)],
    ),
    vendor(
        "FIREWORKS_KEY",
        "Fireworks AI key",
        "`fw_` and 22 or more letters and digits",
        &[begins(&["fw_"]).run(ALNUM, 22).mixed()],
    ),
    vendor(
        "NVIDIA_KEY",
        "NVIDIA API key",
        "`nvapi-` and 60 or more letters, digits, `-`, `_`",
        &[begins(&["nvapi-"]).run(URL_SAFE, 50).digits(1)],
    ),
    vendor(
        "CEREBRAS_KEY",
        "Cerebras API key",
        "`csk-` and 40 or more small letters and digits",
        &[begins(&["csk-"]).run(SMALL_ALNUM, 40).digits(1)],
    ),
    vendor(
        "TOGETHER_KEY",
        "Together AI key",
        "`tgp_v1_` and 43 letters, digits, `-`, `_`",
        &[begins(&["tgp_v1_"]).run(URL_SAFE, 40).digits(1)],
    ),
    vendor(
        "TAVILY_KEY",
        "Tavily API key",
        "`tvly-` and 20 or more letters, digits, `-`",
        &[begins(&["tvly-"]).run(URL_SAFE, 20).digits(1)],
    ),
    vendor(
        "LLAMA_CLOUD_KEY",
        "LlamaCloud API key",
        "`llx-` and 48 letters, digits, `-`, `_`",
        &[begins(&["llx-"]).run(URL_SAFE, 40).digits(1)],
    ),
    vendor(
        "PINECONE_KEY",
        "Pinecone API key",
        "`pcsk_`, five or six characters, `_` and 63 letters and digits",
        &[begins(&["pcsk_"]).run(WORD, 40).digits(1)],
    ),
    vendor(
        "WANDB_KEY",
        "Weights & Biases key",
        "`wandb_v1_` and 60 or more letters, digits, `_`",
        &[begins(&["wandb_v1_"]).run(URL_SAFE, 40).digits(1)],
    ),
    vendor(
        "LANGSMITH_KEY",
        "LangSmith API key",
        "`lsv2_pt_` or `lsv2_sk_`, 32 hexadecimal digits, `_` and 10 more; `ls__` and 32",
        &[begins(&["lsv2_pt_", "lsv2_sk_"]).run(WORD, 32).digits(1), begins(&["ls__"]).run(HEX, 32).digits(1)],
    ),
    vendor(
        "LANGFUSE_KEY",
        "Langfuse secret key",
        "`sk-lf-` and a UUID",
        &[begins(&["sk-lf-"]).exactly(HEX_DASH, 36).digits(1)],
    ),
    vendor(
        "MINIMAX_KEY",
        "MiniMax API key",
        "`sk-api-` and 100 or more letters, digits, `-`, `_`",
        &[begins(&["sk-api-", "sk-cp-"]).run(URL_SAFE, 90).digits(1)],
    ),
    vendor(
        "VOYAGE_KEY",
        "Voyage AI key",
        "`pa-` and 43 letters, digits, `-`, `_`",
        &[begins(&["pa-"]).exactly(URL_SAFE, 43).mixed()],
    ),
    vendor(
        "RUNPOD_KEY",
        "RunPod API key",
        "`rpa_`, 40 capitals and digits and 6 letters and digits",
        &[begins(&["rpa_"]).exactly(CAPITAL_ALNUM, 40).run(ALNUM, 4).digits(2)],
    ),
    vendor(
        "ELEVENLABS_KEY",
        "ElevenLabs API key",
        "`sk_` and 48 hexadecimal digits",
        &[begins(&["sk_"]).exactly(HEX, 48).digits(1)],
    ),
    vendor(
        "JINA_KEY",
        "Jina AI key",
        "`jina_` and 60 letters and digits",
        &[begins(&["jina_"]).run(URL_SAFE, 50).digits(1)],
    ),
    vendor(
        "FIRECRAWL_KEY",
        "Firecrawl API key",
        "`fc-` and 32 hexadecimal digits",
        &[begins(&["fc-"]).exactly(HEX, 32).digits(1)],
    ),
    vendor(
        "FRIENDLI_TOKEN",
        "Friendli token",
        "`flp_` and 46 letters and digits",
        &[begins(&["flp_"]).run(ALNUM, 40).digits(1)],
    ),
    vendor(
        "RUNWAY_KEY",
        "Runway, Retell or Cursor API key",
        "`key_` and 28 to 128 hexadecimal digits; `crsr_` and 64",
        &[begins(&["key_"]).between(HEX, 28, 128).digits(4), begins(&["crsr_"]).run(HEX, 64).digits(1)],
    ),
    vendor(
        "DEVIN_KEY",
        "Devin API key",
        "`apk_` or `apk_user_` and base64",
        &[
            begins(&["apk_user_", "apk_"]).run(URL_SAFE_PADDED, 80).mixed(),
            begins(&["cog_"]).run(SMALL_ALNUM, 48).digits(2),
        ],
    ),
    vendor(
        "BRAVE_SEARCH_KEY",
        "Brave Search key",
        "`BSA` and 28 letters, digits, `-`, `_`",
        &[begins(&["BSA"]).exactly(URL_SAFE, 28).mixed()],
    ),
    vendor("E2B_KEY", "E2B API key", "`e2b_` and 40 hexadecimal digits", &[begins(&["e2b_"]).run(HEX, 40).digits(1)]),
    vendor(
        "DAYTONA_KEY",
        "Daytona API key",
        "`dtn_` and 64 hexadecimal digits",
        &[begins(&["dtn_"]).run(HEX, 64).digits(1)],
    ),
    vendor(
        "BROWSERBASE_KEY",
        "Browserbase API key",
        "`bb_live_` and letters and digits",
        &[begins(&["bb_live_", "bb_test_"]).run(URL_SAFE, 24).digits(1)],
    ),
    vendor(
        "MEM0_KEY",
        "Mem0 API key",
        "`m0-` and 40 letters and digits",
        &[begins(&["m0-"]).exactly(ALNUM, 40).mixed()],
    ),
    vendor(
        "BRAINTRUST_KEY",
        "Braintrust API key",
        "`bt-st-` and 48 letters and digits",
        &[begins(&["bt-st-"]).run(ALNUM, 40).digits(1)],
    ),
    vendor(
        "CARTESIA_KEY",
        "Cartesia API key",
        "`sk_car_` and letters and digits",
        &[begins(&["sk_car_"]).run(URL_SAFE, 20).digits(1)],
    ),
    vendor(
        "ZAI_KEY",
        "Z.AI key",
        "32 hexadecimal digits, `.` and 16 letters and digits",
        &[bare().exactly(HEX, 32).text(".").exactly(ALNUM, 16).mixed()],
    ),
    vendor(
        "COZE_TOKEN",
        "Coze token",
        "`pat_` and 64 letters and digits",
        &[begins(&["pat_"]).exactly(ALNUM, 64).mixed()],
    ),
    vendor(
        "AWS_BEDROCK_KEY",
        "Amazon Bedrock API key",
        "`ABSK` and 109 to 269 characters of base64; `bedrock-api-key-` and base64",
        &[begins(&["ABSK"]).run(PADDED, 100).digits(1), begins(&["bedrock-api-key-"]).run(PADDED, 20).mixed()],
    ),
    vendor(
        "APIFY_TOKEN",
        "Apify token",
        "`apify_api_` and 36 letters and digits",
        &[begins(&["apify_api_"]).run(ALNUM, 30).digits(1)],
    ),
];
