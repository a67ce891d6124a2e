//! One message over HTTP: to the address that was checked, without following redirects.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::time::timeout;

use super::Failure;
use super::address::{Checked, look_up};
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
    let setup = wire.setup();
    let late = |_| Failure::MayPass(format!("not done within {} seconds", setup.talk.as_secs()));
    let host = url.host().unwrap_or_default();
    let port = url.port_u16().unwrap_or(if is_encrypted(url) { 443 } else { 80 });
    let found = timeout(setup.talk, look_up(&setup, host, port, channel.allow_private)).await;
    let checked = found.map_err(late)??;
    // Not timed: others are under way there, each for a bounded time, and nothing is wrong with the receiver.
    let _place = wire.place_at(&checked).await;
    timeout(setup.talk, post_to(&checked, channel, url, headers, body)).await.map_err(late)?
}

fn is_encrypted(url: &Uri) -> bool {
    url.scheme_str() == Some("https")
}

async fn post_to(
    checked: &Checked,
    channel: &Channel,
    url: &Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Result<(), Failure> {
    let host = url.host().unwrap_or_default();
    let stream = connect(checked).await?;
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
    let status = if is_encrypted(url) {
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
