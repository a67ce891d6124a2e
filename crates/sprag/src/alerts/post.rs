//! One message over HTTP: to the address that was checked, without following redirects.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use super::Failure;
use super::address::look_up;
use super::connect::{Pipe, connect, encrypt};
use super::wire::Wire;
use crate::config::Channel;

/// Sends JSON. What the receiver says besides the status is not read.
pub(super) async fn post(
    wire: &Wire,
    channel: &Channel,
    url: &Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Result<(), Failure> {
    let patience = wire.setup().talk;
    let sent = tokio::time::timeout(patience, post_now(wire, channel, url, headers, body)).await;
    sent.unwrap_or_else(|_| Err(Failure::MayPass(format!("not done within {} seconds", patience.as_secs()))))
}

async fn post_now(wire: &Wire, channel: &Channel, url: &Uri, headers: HeaderMap, body: Bytes) -> Result<(), Failure> {
    let host = url.host().unwrap_or_default();
    let is_encrypted = url.scheme_str() == Some("https");
    let port = url.port_u16().unwrap_or(if is_encrypted { 443 } else { 80 });
    let checked = look_up(&wire.setup(), host, port, channel.allow_private).await?;
    let _place = wire.place_at(&checked).await;
    let stream = connect(&checked).await?;
    let path = url.path_and_query().map_or("/", |path| path.as_str());
    let authority = url.authority().map_or(host, |authority| authority.as_str());
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(path)
        .header(HOST, authority)
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, concat!("sprag/", env!("CARGO_PKG_VERSION")))
        .body(Full::new(body))
        .map_err(|_| Failure::Final("the address cannot be called".to_owned()))?;
    request.headers_mut().extend(headers);
    let status = if is_encrypted {
        exchange(encrypt(stream, host, channel.ca_file.as_deref()).await?, request).await?
    } else {
        exchange(stream, request).await?
    };
    judge(status)
}

async fn exchange(pipe: impl Pipe + 'static, request: Request<Full<Bytes>>) -> Result<StatusCode, Failure> {
    let broken = |error: hyper::Error| Failure::MayPass(format!("no answer: {error}"));
    let (mut sender, connection) = http1::handshake(TokioIo::new(pipe)).await.map_err(broken)?;
    // It ends with the sender.
    let running = tokio::spawn(connection);
    let answer = sender.send_request(request).await.map_err(broken);
    running.abort();
    Ok(answer?.status())
}

/// Only what is wrong with the message itself is final. All else can be mended at the other end, or here.
fn judge(status: StatusCode) -> Result<(), Failure> {
    let said = format!("answered {status}");
    match status.as_u16() {
        200..=299 => Ok(()),
        300..=399 => Err(Failure::MayPass(format!("{said}; redirects are not followed"))),
        // This message will never be taken. Everything else somebody can mend meanwhile: an address, a password, a right.
        400 | 413 | 422 => Err(Failure::Final(said)),
        _ => Err(Failure::MayPass(said)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_message_that_will_never_be_taken_is_given_up() {
        let is_final = |code: u16| matches!(judge(StatusCode::from_u16(code).unwrap()), Err(Failure::Final(_)));
        let given_up: Vec<u16> = (200..600).filter(|code| is_final(*code)).collect();
        assert_eq!(given_up, [400, 413, 422]);
        assert!(judge(StatusCode::NO_CONTENT).is_ok());
    }
}
