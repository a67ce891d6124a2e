//! Tests of prices as callers meet them. Costs and names are tested on a small list, so that refreshing the embedded
//! one breaks nothing here.

mod costs;
mod embedded;
mod matching;
mod overriding;
mod properties;
mod reading;

use super::{Price, Prices};
use crate::money::PicoPerToken;

/// A list with one model for each shape of price, and names that are easily confused.
const LIST: &str = "\
# gathered: 2026-11
provider,model,mode,input,output,cache_read,cache_write,cache_write_1h,reasoning,tier_above_tokens,tier_input,tier_output,tier_cache_read,tier_cache_write,max_input_tokens,max_output_tokens,deprecated_on,audio_input,audio_output
openai,gpt-4o,chat,2.5,10,1.25,,,,,,,,,128000,16384,2027-01-14
openai,gpt-4o-2024-05-13,chat,5,15
openai,gpt-4o-mini,chat,0.15,0.6,0.075
openai,gpt-audio,chat,2.5,10,,,,,,,,,,,,,32,64
openai,ft:gpt-4o-mini-2024-07-18,chat,0.3,1.2,0.15
openai,text-embedding-3-small,embedding,0.02
anthropic,claude-opus-5-5,chat,4,20,0.2,5,8
anthropic,claude-haiku-5-5,chat,0.1,0.5,0.01,0.125,0.2,,100000,0.5,2.5,0.05,0.625
anthropic,claude-sonnet-4-5-20250929,chat,3,15,0.3,3.75,6
gemini,gemini-2.5-pro,chat,1.25,10,0.125,,,10,200000,2.5,15
gemini,gemma-free,chat,0,0
mistral,twin-2024-01-01,chat,1,1
mistral,twin-2024-02-02,chat,2,2
dashscope,qwen-turbo,chat,0.05,0.2,,,,0.5
azure,gpt-4o-2024-11-20,chat,2.75,11
perplexity,openai/gpt-4o,chat,2.6,10.4
bedrock,anthropic.claude-opus-5-5,chat,4,20
bedrock,eu.anthropic.claude-opus-5-5,chat,4.4,22
bedrock,us.openai.gpt-regional,chat,9,9
bedrock,amazon.titan-embed-text-v2:0,embedding,0.02
bedrock,anthropic.claude-2-v1,chat,8,24
fireworks,accounts/fireworks/models/kimi-k9,chat,0.6,2.5
cerebras,Llama-9-8B,chat,0.1,0.1
";

fn prices() -> Prices {
    Prices::load(LIST).unwrap()
}

fn price_of(provider: &str, model: &str) -> Price {
    prices().find(provider, model).unwrap_or_else(|| panic!("{provider} {model} has no price")).clone()
}

fn usd(text: &str) -> PicoPerToken {
    PicoPerToken::parse_usd_per_million(text).unwrap()
}
