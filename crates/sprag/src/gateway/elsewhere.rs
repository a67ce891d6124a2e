//! Whether a provider will read more than a body shows: files, pages, pictures by their address, the web.
//!
//! An upper bound on what a call costs must know that. Words in the texts of a conversation do not count: there, quotes
//! stand behind a backslash. It is no parser, and what it takes for a sign by mistake costs the caller room, not money.

/// Fields that only such requests have.
const FIELDS: [&[u8]; 19] = [
    b"\"file_id\"",
    b"\"file_ids\"",
    b"\"fileData\"",
    b"\"file_data\"",
    b"\"file_url\"",
    b"\"file_uri\"",
    b"\"cachedContent\"",
    b"\"cached_content\"",
    b"\"googleSearch\"",
    b"\"google_search\"",
    b"\"googleSearchRetrieval\"",
    b"\"urlContext\"",
    b"\"url_context\"",
    b"\"codeExecution\"",
    b"\"vector_store_ids\"",
    b"\"web_search_options\"",
    b"\"mcp_servers\"",
    b"\"server_url\"",
    b"\"input_audio\"",
];

/// How the values of other fields begin in such requests.
const VALUES: [(&[u8], &[&[u8]]); 3] = [
    (b"\"url\"", &[b"http"]),
    (b"\"image_url\"", &[b"http"]),
    (
        b"\"type\"",
        &[
            b"web_search",
            b"web_fetch",
            b"file_search",
            b"code_interpreter",
            b"code_execution",
            b"mcp",
            b"computer",
            b"document",
            b"item_reference",
        ],
    ),
];

/// Where a body says what it inlines. Only of pictures it is known how many tokens they are at most.
const KINDS: [&[u8]; 3] = [b"\"mimeType\"", b"\"mime_type\"", b"\"media_type\""];

/// Whether a body points at something that it does not hold, or holds something that no bound is known for.
pub(crate) fn refers_elsewhere(body: &[u8]) -> bool {
    hides_letters(body)
        || FIELDS.iter().any(|field| memchr::memmem::find(body, field).is_some())
        || VALUES
            .iter()
            .any(|(field, signs)| texts(body, field).any(|text| signs.iter().any(|sign| begins(text, sign))))
        || KINDS.iter().any(|field| texts(body, field).any(|text| !begins(text, b"image/") && !begins(text, b"text/")))
}

/// Whether a letter, a digit or `_` is written as `\u00…`. No program does that unless it wants not to be read.
fn hides_letters(body: &[u8]) -> bool {
    memchr::memmem::find_iter(body, b"\\u00").any(|at| {
        let code = body.get(at + 4..at + 6).and_then(|code| std::str::from_utf8(code).ok());
        let byte = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        // Behind another backslash it is a text about escapes.
        let before = body[..at].iter().rev().take_while(|b| **b == b'\\').count();
        before % 2 == 0 && byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

/// The texts that a field has, each with all that comes behind it.
fn texts<'a>(body: &'a [u8], field: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    memchr::memmem::find_iter(body, field).filter_map(move |at| {
        let behind = body.get(at + field.len()..)?.trim_ascii_start().strip_prefix(b":")?;
        behind.trim_ascii_start().strip_prefix(b"\"")
    })
}

fn begins(text: &[u8], sign: &[u8]) -> bool {
    text.get(..sign.len()).is_some_and(|start| start.eq_ignore_ascii_case(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_body_only_points_at_is_noticed() {
        for body in [
            r#"{"image_url":{"url":"https://x/y.png"}}"#,
            "{\"image_url\":{\"url\" :\n\t \"HTTPS://x/y.png\"}}",
            r#"{"type":"input_image","image_url": "http://x"}"#,
            r#"{"tools":[{"type" : "web_search_20250305"}]}"#,
            r#"{"tools":[{"type": "file_search","vector_store_ids":[]}]}"#,
            r#"{"tools":[{"type":"mcp","server_url":"x"}]}"#,
            r#"{"source":{"type":"base64","media_type":"application/pdf","data":"AAAA"},"type":"document"}"#,
            r#"{"inlineData":{"mimeType":"video/mp4","data":"AAAA"}}"#,
            r#"{"tools":[{"googleSearch":{}}]}"#,
            r#"{"fileData":{"fileUri":"x"}}"#,
            r#"{"file\u005fid":"x"}"#,
            r#"{"type":"web\u005Fsearch"}"#,
            r#"{"image_url":{"url":"\u0068ttps://x/y.png"}}"#,
            r#"{"a":"\\\u0041"}"#,
        ] {
            assert!(refers_elsewhere(body.as_bytes()), "{body}");
        }
    }

    #[test]
    fn what_is_there_is_not_elsewhere() {
        for body in [
            r#"{"messages":[{"role":"user","content":"https://x is a page, \"url\":\"http://x\" is not a field"}]}"#,
            r#"{"image_url":{"url":"data:image/png;base64,AAAA"}}"#,
            r#"{"source":{"type":"base64","media_type":"image/png","data":"AAAA"},"type":"image"}"#,
            r#"{"inlineData":{"mimeType":"image/jpeg","data":"AAAA"}}"#,
            r#"{"tools":[{"type":"function","function":{"name":"web_search"}}],"generationConfig":{"responseMimeType":"application/json"}}"#,
            r#"{"text":"caf\u00e9 \u003cb\u003e \u0000 \u2026 and \\u0041 in a text"}"#,
            r#"{"text":"\u00"#,
            r#"{"type"#,
            r#"{"url":"#,
        ] {
            assert!(!refers_elsewhere(body.as_bytes()), "{body}");
        }
    }
}
