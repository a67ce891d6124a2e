//! The head of a request as bytes, and what the head of an answer says. Nothing here reads or waits.

use std::mem::MaybeUninit;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};
use http::{Method, Request, Response, StatusCode, Version};
use hyper::ext::ReasonPhrase;

use super::framing::{Chunked, Framing};

/// Headers of one answer.
const HEADERS: usize = 128;
/// Headers of an answer that Sprag adds to it, so that there is room for them.
const ADDED_HEADERS: usize = 8;
/// Room for a head that is written.
const USUAL_BYTES: usize = 1024;

/// An answer that makes no sense, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer is not HTTP: {0}")]
pub(super) struct Malformed(pub(super) &'static str);

/// The head of an answer.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) response: Response<()>,
    pub(super) framing: Framing,
    /// The connection may be used again.
    pub(super) keeps: bool,
    /// Its bytes.
    pub(super) length: usize,
}

/// The head of a request with a body of known length. What its headers say of the body is said anew.
pub(super) fn encode(request: &Request<Bytes>) -> Vec<u8> {
    let mut out = Vec::with_capacity(USUAL_BYTES);
    let target = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    for part in [request.method().as_str(), " ", target, " HTTP/1.1\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    for (name, value) in request.headers() {
        if name != CONTENT_LENGTH && name != TRANSFER_ENCODING {
            field(&mut out, name, value.as_bytes());
        }
    }
    let length = request.body().len();
    if length > 0 || matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH) {
        field(&mut out, &CONTENT_LENGTH, itoa::Buffer::new().format(length).as_bytes());
    }
    out.extend_from_slice(b"\r\n");
    out
}

fn field(out: &mut Vec<u8>, name: &HeaderName, value: &[u8]) {
    for part in [name.as_str().as_bytes(), b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

/// Reads the head of an answer to a request of this kind; none while it is not whole.
pub(super) fn parse(seen: &Bytes, method: &Method) -> Result<Option<Head>, Malformed> {
    // Four kilobytes, of which a usual answer touches three hundred bytes.
    let mut fields = [const { MaybeUninit::uninit() }; HEADERS];
    let mut parsed = httparse::Response::new(&mut []);
    let reading = httparse::ParserConfig::default();
    let length = match reading.parse_response_with_uninit_headers(&mut parsed, seen, &mut fields) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Malformed("it has too many headers")),
        Err(_) => return Err(Malformed("its head cannot be read")),
    };
    let code = parsed.code.and_then(|code| StatusCode::from_u16(code).ok());
    let status = code.ok_or(Malformed("its status is none"))?;
    let mut response = Response::new(());
    *response.status_mut() = status;
    *response.version_mut() = if parsed.version == Some(0) { Version::HTTP_10 } else { Version::HTTP_11 };
    let reason = parsed.reason.unwrap_or_default();
    if Some(reason) != status.canonical_reason()
        && let Ok(reason) = ReasonPhrase::try_from(reason.as_bytes().to_vec())
    {
        response.extensions_mut().insert(reason);
    }
    *response.headers_mut() = headers(seen, parsed.headers)?;
    let keeps = keeps_connection(response.version(), response.headers());
    let is_empty = *method == Method::HEAD
        || status.is_informational()
        || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let (framing, is_clear) = if is_empty { (Framing::Length(0), true) } else { framing(response.headers_mut())? };
    let keeps = keeps && is_clear && !framing.ends_with_connection();
    Ok(Some(Head { response, framing, keeps, length }))
}

/// What came behind a body in chunks.
pub(super) fn trailers(text: Vec<u8>) -> Result<HeaderMap, Malformed> {
    let text = Bytes::from(text);
    let mut fields = [httparse::EMPTY_HEADER; HEADERS];
    match httparse::parse_headers(&text, &mut fields) {
        Ok(httparse::Status::Complete((_, fields))) => headers(&text, fields),
        _ => Err(Malformed("its trailers cannot be read")),
    }
}

fn headers(text: &Bytes, fields: &[httparse::Header<'_>]) -> Result<HeaderMap, Malformed> {
    let mut headers = HeaderMap::with_capacity(fields.len() + ADDED_HEADERS);
    for field in fields {
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| Malformed("a header has no name"))?;
        let value = HeaderValue::from_maybe_shared(text.slice_ref(field.value));
        headers.append(name, value.map_err(|_| Malformed("a header cannot be read"))?);
    }
    Ok(headers)
}

/// How long a body is, and whether that is clear: somebody in between may have seen another end where it is told in two ways.
fn framing(headers: &mut HeaderMap) -> Result<(Framing, bool), Malformed> {
    if let Some(last) = headers.get_all(TRANSFER_ENCODING).iter().next_back() {
        let last = last.to_str().unwrap_or_default().rsplit(',').next().unwrap_or_default().trim();
        let is_chunked = last.eq_ignore_ascii_case("chunked");
        let is_clear = headers.remove(CONTENT_LENGTH).is_none();
        return match is_chunked {
            true => Ok((Framing::Chunked(Chunked::default()), is_clear)),
            false => Ok((Framing::UntilClose, is_clear)),
        };
    }
    let mut length = None;
    for value in headers.get_all(CONTENT_LENGTH) {
        for told in value.to_str().unwrap_or("?").split(',') {
            let told = told.trim();
            let is_number = !told.is_empty() && told.bytes().all(|byte| byte.is_ascii_digit());
            let told = told.parse::<u64>().ok().filter(|_| is_number);
            let told = told.ok_or(Malformed("its length is no number"))?;
            if length.is_some_and(|length| length != told) {
                return Err(Malformed("it has two lengths"));
            }
            length = Some(told);
        }
    }
    Ok((length.map_or(Framing::UntilClose, Framing::Length), true))
}

fn keeps_connection(version: Version, headers: &HeaderMap) -> bool {
    let says = |word: &str| {
        let lists = headers.get_all(CONNECTION).into_iter().filter_map(|list| list.to_str().ok());
        lists.flat_map(|list| list.split(',')).any(|said| said.trim().eq_ignore_ascii_case(word))
    };
    match version {
        Version::HTTP_10 => says("keep-alive") && !says("close"),
        _ => !says("close"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, method: &Method) -> Result<Option<Head>, Malformed> {
        parse(&Bytes::copy_from_slice(text.as_bytes()), method)
    }

    fn head(text: &str) -> Head {
        read(text, &Method::POST).unwrap().unwrap()
    }

    #[test]
    fn a_request_says_how_long_it_is_and_nothing_else_of_its_body() {
        let request = |method: &str, body: &'static str| {
            let builder = Request::builder().method(method).uri("http://host:1/v1/chat?a=b").header("host", "host:1");
            let told = builder.header("content-length", "7").header("transfer-encoding", "chunked").header("x", "1");
            String::from_utf8(encode(&told.body(Bytes::from_static(body.as_bytes())).unwrap())).unwrap()
        };
        let expected = "POST /v1/chat?a=b HTTP/1.1\r\nhost: host:1\r\nx: 1\r\ncontent-length: 5\r\n\r\n";
        assert_eq!(request("POST", "hello"), expected);
        assert!(request("POST", "").ends_with("content-length: 0\r\n\r\n"));
        assert_eq!(request("GET", ""), "GET /v1/chat?a=b HTTP/1.1\r\nhost: host:1\r\nx: 1\r\n\r\n");
    }

    #[test]
    fn a_head_is_read_when_it_is_whole() {
        let text = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nx: 1\r\nX: 2\r\ncontent-length: 2\r\n\r\nhi";
        let end = text.len() - 2;
        for length in 0..end {
            assert!(read(&text[..length], &Method::GET).unwrap().is_none(), "{length}");
        }
        let Head { response, framing, keeps, length } = head(text);
        assert_eq!((response.status(), length, keeps), (StatusCode::OK, end, true));
        assert_eq!(response.headers().get_all("x").iter().collect::<Vec<_>>(), ["1", "2"]);
        assert!(matches!(framing, Framing::Length(2)));
        assert!(response.extensions().get::<ReasonPhrase>().is_none());
        let odd = head("HTTP/1.1 200 Fine\r\n\r\n").response;
        assert_eq!(odd.extensions().get::<ReasonPhrase>().map(ReasonPhrase::as_bytes), Some(&b"Fine"[..]));
    }

    #[test]
    fn how_long_an_answer_is() {
        let of = |method: Method, text: &str| {
            let head = read(&format!("HTTP/1.1 {text}\r\n\r\n"), &method).unwrap().unwrap();
            let length = head.response.headers().get(CONTENT_LENGTH).is_some();
            (format!("{:?}", head.framing).split(' ').next().unwrap_or_default().to_owned(), head.keeps, length)
        };
        let cases = [
            (Method::POST, "200 OK\r\ncontent-length: 5", "Length(5)", true, true),
            (Method::POST, "200 OK\r\ncontent-length: 5, 5\r\ncontent-length: 5", "Length(5)", true, true),
            (Method::HEAD, "200 OK\r\ncontent-length: 5", "Length(0)", true, true),
            (Method::POST, "204 No Content", "Length(0)", true, false),
            (Method::POST, "304 Not Modified\r\ncontent-length: 5", "Length(0)", true, true),
            (Method::POST, "200 OK\r\ntransfer-encoding: chunked", "Chunked(Chunked", true, false),
            (Method::POST, "200 OK\r\ntransfer-encoding: gzip, Chunked", "Chunked(Chunked", true, false),
            (
                Method::POST,
                "200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked",
                "Chunked(Chunked",
                false,
                false,
            ),
            (Method::POST, "200 OK\r\ntransfer-encoding: gzip\r\ncontent-length: 5", "UntilClose", false, false),
            (Method::POST, "200 OK", "UntilClose", false, false),
            (Method::POST, "200 OK\r\ncontent-length: 5\r\nconnection: x, Close", "Length(5)", false, true),
        ];
        for (method, text, framing, keeps, has_length) in cases {
            assert_eq!(of(method, text), (framing.to_owned(), keeps, has_length), "{text}");
        }
        let old = head("HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\n");
        assert!(!old.keeps);
        assert!(head("HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\n").keeps);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let many = "x: 1\r\n".repeat(HEADERS + 1);
        for text in [
            "SSH-2.0-OpenSSH\r\n\r\n",
            "HTTP/1.1 99 No\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: five\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: +5\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: \r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
            "HTTP/1.1 200 OK\r\nno header\r\n\r\n",
            &format!("HTTP/1.1 200 OK\r\n{many}\r\n"),
        ] {
            assert!(read(text, &Method::POST).is_err(), "{text:?}");
        }
    }
}
