//! Paths that are not the provider's: tests in other languages look at the log and steer from there.
//!
//! `GET /__requests` lists the requests, `POST /__reset` starts afresh, `POST /__release` opens the gate behind
//! `stall` and `hold` directives, `GET /__health` counts what is open.

use super::World;
use crate::log::{Ending, Recorded};
use http::Method;
use serde_json::{Map, Value, json};

/// The answer to a control request; nothing when the path is not one.
pub(super) fn answer(world: &World, method: &Method, path: &str) -> Option<Value> {
    match (method.as_str(), path) {
        ("GET", "/__requests") => Some(world.log.view().requests.iter().map(describe).collect()),
        ("GET", "/__health") => {
            let view = world.log.view();
            Some(json!({
                "total": view.total,
                "open_connections": view.open_connections,
                "open_responses": view.open_responses,
                "aborted": view.aborted,
            }))
        }
        ("POST", "/__reset") => {
            reset(world);
            Some(json!({"reset": true}))
        }
        ("POST", "/__release") => {
            world.script.gate.open();
            Some(json!({"released": true}))
        }
        _ => None,
    }
}

pub(super) fn reset(world: &World) {
    world.log.clear();
    world.memory.clear();
    world.script.rewind();
}

fn describe(request: &Recorded) -> Value {
    let mut headers = Map::new();
    for (name, value) in &request.headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        headers.insert(name.as_str().into(), value.into());
    }
    let (ending, at_byte) = match request.ending {
        Ending::Open => ("open", None),
        Ending::Completed => ("completed", None),
        Ending::ClientLeft { at_byte } => ("client_left", Some(at_byte)),
        Ending::Cut { at_byte } => ("cut", Some(at_byte)),
        Ending::UploadBroken => ("upload_broken", None),
    };
    json!({
        "seq": request.seq,
        "method": request.method,
        "path": request.path,
        "version": format!("{:?}", request.version),
        "headers": headers,
        "body": String::from_utf8_lossy(&request.body),
        "connection": request.connection,
        "ending": ending,
        "at_byte": at_byte,
    })
}
