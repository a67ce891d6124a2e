//! Which price a name gets.

use super::{price_of, prices, usd};
use crate::limits::MODEL_NAME_BYTES;
use crate::price::Prices;

fn row(provider: &str, model: &str) -> String {
    let prices = prices();
    prices.find(provider, model).map_or("none".to_owned(), |price| format!("{} {}", price.provider, price.model))
}

#[test]
fn a_provider_comes_before_everyone_else() {
    assert_eq!(row("openai", "gpt-4o"), "openai gpt-4o");
    assert_eq!(row("perplexity", "openai/gpt-4o"), "perplexity openai/gpt-4o");
    assert_eq!(row("perplexity", "gpt-4o"), "perplexity openai/gpt-4o");
    assert_eq!(row("bedrock", "claude-opus-5-5"), "bedrock anthropic.claude-opus-5-5");
}

#[test]
fn a_maker_comes_before_a_seller_who_lists_the_date() {
    assert_eq!(row("azure", "gpt-4o-2024-11-20"), "azure gpt-4o-2024-11-20");
    assert_eq!(row("elsewhere", "gpt-4o-2024-11-20"), "openai gpt-4o");
}

#[test]
fn prefixes_come_off() {
    for (provider, model, expected) in [
        ("openrouter", "openai/gpt-4o", "openai gpt-4o"),
        ("openrouter", "anthropic/claude-opus-5.5", "anthropic claude-opus-5-5"),
        ("gemini", "models/gemini-2.5-pro", "gemini gemini-2.5-pro"),
        ("my-vertex", "publishers/google/models/gemini-2.5-pro", "gemini gemini-2.5-pro"),
        ("my-vertex", "projects/p/locations/eu/publishers/google/models/gemini-2.5-pro", "gemini gemini-2.5-pro"),
        ("fireworks", "kimi-k9", "fireworks accounts/fireworks/models/kimi-k9"),
        ("mine", "mine/openrouter/openai/gpt-4o", "openai gpt-4o"),
        ("cerebras", "llama-9-8b", "cerebras Llama-9-8B"),
        ("openai", "GPT-4o", "openai gpt-4o"),
    ] {
        assert_eq!(row(provider, model), expected, "{provider} {model}");
    }
}

#[test]
fn dates_come_off_when_the_dated_name_is_not_listed() {
    for (model, expected) in [
        ("gpt-4o-2024-08-06", "openai gpt-4o"),
        ("gpt-4o-20240806", "openai gpt-4o"),
        ("gpt-4o-2024-05-13", "openai gpt-4o-2024-05-13"),
        ("openai/gpt-4o-2024-05-13", "openai gpt-4o-2024-05-13"),
        ("gpt-4o-latest", "openai gpt-4o"),
        ("claude-sonnet-4-5", "anthropic claude-sonnet-4-5-20250929"),
        ("claude-sonnet-4-5-latest", "anthropic claude-sonnet-4-5-20250929"),
        ("claude-sonnet-4-5@20250929", "anthropic claude-sonnet-4-5-20250929"),
        ("claude-sonnet-4-5@default", "anthropic claude-sonnet-4-5-20250929"),
        ("claude-sonnet-4.5:thinking", "anthropic claude-sonnet-4-5-20250929"),
        ("gpt-4o-2024-13-06", "none"),
        ("gpt-4o-2024-12-32", "none"),
        ("gpt-4o-19990806", "none"),
        ("gpt-4o-0806", "none"),
    ] {
        assert_eq!(row("elsewhere", model), expected, "{model}");
    }
}

#[test]
fn a_name_is_never_matched_by_its_beginning() {
    for model in [
        "gpt-4o-mini-ultra",
        "gpt-4o-micro",
        "gpt-4",
        "gpt",
        "o",
        "claude-opus-5-5-fast",
        "claude-opus-5",
        "gpt-4o:free",
        "gpt-4o:online",
        "someone/gpt-4o",
        "accounts/me/models/kimi-k9",
        "eu/gpt-4o",
        "",
        "-2024-08-06",
        "openai/",
        "ünknown-2024-08-06",
    ] {
        assert_eq!(row("openai", model), "none", "{model}");
    }
    assert_eq!(price_of("openai", "gpt-4o-mini").rates.input, usd("0.15"));
}

#[test]
fn bedrock_regions_and_versions() {
    for (provider, model, expected) in [
        ("bedrock", "eu.anthropic.claude-opus-5-5-20260101-v1:0", "bedrock eu.anthropic.claude-opus-5-5"),
        ("bedrock", "us.anthropic.claude-opus-5-5-v1:0", "bedrock anthropic.claude-opus-5-5"),
        ("bedrock-eu", "eu.anthropic.claude-opus-5-5", "bedrock eu.anthropic.claude-opus-5-5"),
        (
            "bedrock",
            "arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.claude-opus-5-5",
            "bedrock eu.anthropic.claude-opus-5-5",
        ),
        ("bedrock", "anthropic.claude-opus-5-5-20260101-v2:0", "bedrock anthropic.claude-opus-5-5"),
        ("bedrock", "anthropic.claude-2", "bedrock anthropic.claude-2-v1"),
        ("bedrock", "us.openai.gpt-regional", "bedrock us.openai.gpt-regional"),
        // One region's price is nobody else's, and another version is another model.
        ("bedrock", "openai.gpt-regional", "none"),
        ("bedrock", "amazon.titan-embed-text-v3:0", "none"),
        ("bedrock", "amazon.titan-embed-text-v1:0", "none"),
    ] {
        assert_eq!(row(provider, model), expected, "{provider} {model}");
    }
}

#[test]
fn a_fine_tune_has_the_price_of_fine_tunes_or_none() {
    let base = "openai ft:gpt-4o-mini-2024-07-18";
    assert_eq!(row("openai", "ft:gpt-4o-mini-2024-07-18:org::id"), base);
    assert_eq!(row("openai", "ft:gpt-4o-mini-2024-07-18:org:name:id:ckpt-step-9"), base);
    assert_eq!(row("openai", "openai/ft:gpt-4o-mini-2024-07-18:org::id"), base);
    assert_eq!(row("openai", "ft:gpt-4o:org::id"), "none");
}

#[test]
fn rows_that_disagree_leave_the_undated_name_without_a_price() {
    assert_eq!(row("mistral", "twin-2024-01-01"), "mistral twin-2024-01-01");
    assert_eq!(row("mistral", "twin"), "none");
    assert_eq!(row("mistral", "twin-2024-03-03"), "none");
}

#[test]
fn what_is_free_at_one_provider_is_not_free_at_another() {
    assert_eq!(row("gemini", "gemma-free"), "gemini gemma-free");
    assert_eq!(row("gemini", "models/gemma-free"), "gemini gemma-free");
    assert_eq!(row("openrouter", "google/gemma-free"), "none");
    assert_eq!(row("openrouter", "gemma-free"), "none");
}

#[test]
fn local_models_have_no_list_price() {
    for provider in ["ollama", "vllm", "lmstudio"] {
        assert_eq!(row(provider, "llama-9-8b"), "none");
        assert_eq!(row(provider, "openai/gpt-4o"), "none");
    }
    assert_eq!(row("elsewhere", "llama-9-8b"), "cerebras Llama-9-8B");
}

#[test]
fn names_up_to_the_bound_are_looked_up() {
    let name = "m".repeat(MODEL_NAME_BYTES);
    let prices = Prices::load(&format!("provider,model,input,output\nopenai,{name},1,1\n")).unwrap();
    assert!(prices.find("openai", &name).is_some());
    assert!(prices.find("elsewhere", &name).is_some());
    assert!(prices.find("elsewhere", &format!("{name}m")).is_none());
    // What would be short enough without its prefix is too long as it came.
    assert!(prices.find("elsewhere", &format!("openai/{name}")).is_none());
}
