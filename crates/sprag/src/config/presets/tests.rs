use sprag_core::limits;

use super::*;
use crate::config::sandbox::Sandbox;
use crate::config::{Auth, Settings};

fn settings(text: &str) -> Settings {
    Sandbox::new(text).load().unwrap_or_else(|problems| panic!("{problems}")).settings
}

fn url(settings: &Settings, provider: &str, path: &str) -> String {
    settings.providers[provider].url(path).unwrap().to_string()
}

#[test]
fn every_preset_reaches_its_chat_endpoint() {
    let settings = settings("[providers.azure]\nbase_url = \"https://me.openai.azure.com\"");
    let cases = [
        ("openai", "https://api.openai.com/v1/chat/completions"),
        ("mistral", "https://api.mistral.ai/v1/chat/completions"),
        ("groq", "https://api.groq.com/openai/v1/chat/completions"),
        ("deepseek", "https://api.deepseek.com/v1/chat/completions"),
        ("xai", "https://api.x.ai/v1/chat/completions"),
        ("cohere", "https://api.cohere.ai/compatibility/v1/chat/completions"),
        ("together", "https://api.together.xyz/v1/chat/completions"),
        ("fireworks", "https://api.fireworks.ai/inference/v1/chat/completions"),
        ("perplexity", "https://api.perplexity.ai/chat/completions"),
        ("openrouter", "https://openrouter.ai/api/v1/chat/completions"),
        ("cerebras", "https://api.cerebras.ai/v1/chat/completions"),
        ("moonshot", "https://api.moonshot.ai/v1/chat/completions"),
        ("zai", "https://api.z.ai/api/paas/v4/chat/completions"),
        ("minimax", "https://api.minimax.io/v1/chat/completions"),
        ("ollama", "http://127.0.0.1:11434/v1/chat/completions"),
        ("vllm", "http://127.0.0.1:8000/v1/chat/completions"),
        ("lmstudio", "http://127.0.0.1:1234/v1/chat/completions"),
        ("azure", "https://me.openai.azure.com/openai/v1/chat/completions"),
    ];
    for (name, expected) in cases {
        assert_eq!(url(&settings, name, "/v1/chat/completions"), expected);
    }
    assert_eq!(cases.len() + 2, PRESETS.len());
    assert_eq!(
        url(&settings, "anthropic", "/v1/messages?beta=true"),
        "https://api.anthropic.com/v1/messages?beta=true"
    );
    let gemini = "/v1beta/models/gemini-2.5-pro:generateContent";
    assert_eq!(url(&settings, "gemini", gemini), format!("https://generativelanguage.googleapis.com{gemini}"));
}

#[test]
fn swapping_the_host_is_right_too() {
    let settings = settings("[providers.azure]\nbase_url = \"https://me.openai.azure.com/\"");
    let cases = [
        ("groq", "/openai/v1/chat/completions", "https://api.groq.com/openai/v1/chat/completions"),
        ("openrouter", "/api/v1/models", "https://openrouter.ai/api/v1/models"),
        ("zai", "/api/paas/v4/chat/completions", "https://api.z.ai/api/paas/v4/chat/completions"),
        ("zai", "/api/anthropic/v1/messages", "https://api.z.ai/api/anthropic/v1/messages"),
        ("perplexity", "/v1/responses", "https://api.perplexity.ai/v1/responses"),
        ("cohere", "/v2/chat", "https://api.cohere.ai/v2/chat"),
        (
            "azure",
            "/openai/deployments/d/chat/completions?api-version=1",
            "https://me.openai.azure.com/openai/deployments/d/chat/completions?api-version=1",
        ),
    ];
    for (name, path, expected) in cases {
        assert_eq!(url(&settings, name, path), expected);
    }
}

#[test]
fn another_base_url_stands_before_the_path_unchanged() {
    for preset in PRESETS {
        let flag = format!("{}=http://host:1", preset.name);
        let loaded = Sandbox::new("").with_flags(&["--provider", &flag]).load().unwrap();
        let provider = &loaded.settings.providers[preset.name];
        assert_eq!(provider.url("/v1/chat/completions").unwrap(), "http://host:1/v1/chat/completions");
        assert_eq!((provider.family, provider.stream_usage), (preset.family, preset.stream_usage), "{}", preset.name);
    }
}

#[test]
fn a_version_in_the_base_url_is_not_doubled() {
    let cases = [
        ("openai", "http://h/v1", "/v1/chat/completions", "http://h/v1/chat/completions"),
        ("openai", "http://h/v1/", "/chat/completions", "http://h/v1/chat/completions"),
        ("groq", "https://api.groq.com/openai/v1", "/v1/models", "https://api.groq.com/openai/v1/models"),
        ("groq", "https://api.groq.com/openai", "/v1/models", "https://api.groq.com/openai/v1/models"),
        ("zai", "https://api.z.ai/api/coding/paas/v4", "/v1/models", "https://api.z.ai/api/coding/paas/v4/models"),
        ("gemini", "https://g/v1beta", "/v1beta/models/m:x", "https://g/v1beta/models/m:x"),
    ];
    for (name, base_url, path, expected) in cases {
        let settings = settings(&format!("[providers.{name}]\nbase_url = \"{base_url}\""));
        assert_eq!(url(&settings, name, path), expected, "{base_url}");
    }
    let text = "[providers.openai]\nbase_url = \"http://h/v1\"\nrewrite = {}";
    assert_eq!(url(&settings(text), "openai", "/v1/x"), "http://h/v1/v1/x");
}

#[test]
fn keys_go_where_the_provider_looks_and_none_is_taken_from_the_environment() {
    let loaded =
        Sandbox::new("").with_env(&[("OPENAI_API_KEY", "sk-1"), ("ANTHROPIC_API_KEY", "sk-2")]).load().unwrap();
    let providers = &loaded.settings.providers;
    assert_eq!(providers["openai"].auth, Auth::Bearer);
    assert_eq!(providers["anthropic"].auth, Auth::Header("x-api-key".parse().unwrap()));
    assert_eq!(providers["gemini"].auth, Auth::Header("x-goog-api-key".parse().unwrap()));
    assert!(providers.values().all(|provider| provider.key.is_none()));
    assert!(!providers.contains_key("azure"), "azure has no URL until it is given one");
    assert_eq!(providers.len(), 19);
}

#[test]
fn only_those_that_understand_it_are_asked_for_usage() {
    let asked: Vec<_> = PRESETS.iter().filter(|preset| preset.stream_usage).map(|preset| preset.name).collect();
    let expected = [
        "openai",
        "groq",
        "deepseek",
        "xai",
        "together",
        "fireworks",
        "openrouter",
        "cerebras",
        "ollama",
        "vllm",
        "lmstudio",
        "azure",
    ];
    assert_eq!(asked, expected);
}

#[test]
fn names_are_usable() {
    for preset in PRESETS {
        assert!(!is_reserved(preset.name) && preset.name.len() <= limits::PROVIDER_NAME_BYTES);
    }
    for name in ["v1", "v1beta", "v2", "agents", "healthz", "readyz", "metrics", "api"] {
        assert!(is_reserved(name), "{name}");
    }
    assert!(!is_reserved("vllm") && !is_reserved("my-gw"));
}
