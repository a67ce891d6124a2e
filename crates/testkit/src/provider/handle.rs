//! One request: read it, record it, decide what to say, deliver it.

use super::api::{Api, recognise};
use super::error::Problem;
use super::memory::Answered;
use super::turn::{Conversation, Turn, report};
use super::{World, anthropic, catalogue, chat, completions, control, gemini, responses};
use crate::delivery::{Content, Cut, ScriptedBody, cut_before_head, hold, plan};
use crate::directive;
use crate::fault::{CutHow, Fault};
use crate::log::{AnswerState, AnswerTicket, Ending, Recorded};
use crate::reply::Reply;
use crate::script::Heard;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use serde_json::Value;
use sprag_core::limits::MOCK_BODY_BYTES;
use sprag_core::wire::Family;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is said, before it is delivered.
struct Said {
    status: u16,
    content_type: String,
    content: Content,
    headers: Vec<(String, String)>,
    faults: Vec<Fault>,
}

pub(super) async fn answer(
    request: Request<Incoming>,
    world: Arc<World>,
    connection: u64,
    reset: Arc<AtomicBool>,
) -> Result<Response<ScriptedBody>, Cut> {
    let (parts, body) = request.into_parts();
    if let Some(value) = control::answer(&world, &parts.method, parts.uri.path()) {
        return Ok(Response::new(ScriptedBody::plain(value.to_string().into())));
    }
    let (_, family) = recognise(&parts.method, parts.uri.path(), &parts.headers);
    let record = |body: Bytes, ending: Ending| world.log.record(recorded(&parts, body, connection, ending));
    let ticket = |seq| AnswerTicket { log: world.log.clone(), seq, bytes: 0, state: AnswerState::Sending };

    let refused = world.script.refuse_expect.filter(|_| parts.headers.contains_key(http::header::EXPECT));
    let read = match refused {
        Some(status) => Err(Problem::new(status, "The mock does not want the body.")),
        None => match Limited::new(body, MOCK_BODY_BYTES).collect().await {
            Ok(body) => Ok(body.to_bytes()),
            Err(error) if error.is::<LengthLimitError>() => Err(Problem::new(413, "Request body too large.")),
            Err(_) => {
                record(Bytes::new(), Ending::UploadBroken);
                return Err(Cut);
            }
        },
    };
    // From here on the ticket settles the answer, also when the client leaves before its head.
    let (ticket, said) = match read {
        Ok(body) => {
            let ticket = ticket(record(body.clone(), Ending::Open));
            let said = decide(&world, &parts, &body, ticket.seq);
            (ticket, said)
        }
        Err(problem) => (ticket(record(Bytes::new(), Ending::Open)), Err(problem)),
    };
    let said = said.unwrap_or_else(|problem| Said::failed(&problem, family));
    deliver(said, parts.method == Method::HEAD, ticket, reset).await
}

async fn deliver(
    said: Said,
    without_body: bool,
    mut ticket: AnswerTicket,
    reset: Arc<AtomicBool>,
) -> Result<Response<ScriptedBody>, Cut> {
    if let Some(gate) = hold(&said.faults) {
        gate.pass().await;
    }
    if let Some(how) = cut_before_head(&said.faults) {
        ticket.state = AnswerState::Cut;
        reset.store(how == CutHow::Reset, Ordering::SeqCst);
        return Err(Cut);
    }
    let mut plan = plan(said.content, &said.faults);
    if without_body {
        plan.steps.clear();
    }
    let mut response = Response::builder().status(said.status);
    if let Some(headers) = response.headers_mut() {
        headers.extend(std::mem::take(&mut plan.headers));
        let more = [("content-type".to_owned(), said.content_type), ("x-request-id".into(), request_id(ticket.seq))];
        let anthropic_id = ("request-id".to_owned(), request_id(ticket.seq));
        for (name, value) in more.into_iter().chain([anthropic_id]).chain(said.headers) {
            if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
                headers.append(name, value);
            }
        }
    }
    response.body(ScriptedBody::new(plan, ticket, reset)).map_err(|_| Cut)
}

fn decide(world: &World, parts: &Parts, body: &Bytes, number: u64) -> Result<Said, Problem> {
    let path = parts.uri.path();
    let query = parts.uri.query().unwrap_or("");
    let (api, family) = recognise(&parts.method, path, &parts.headers);
    let is_call = !matches!(api, Api::Models | Api::Other);
    let json: Value = match serde_json::from_slice(body) {
        Ok(json) => json,
        Err(_) if !is_call => Value::Null,
        Err(error) => return Err(Problem::new(400, format!("The body is not JSON: {error}"))),
    };
    let mut heard = converse(api, &json, path);
    let earlier = earlier_answer(world, api, &heard)?;
    heard.turns += earlier.turns;
    heard.said.insert_str(0, &earlier.said);
    if heard.tools.is_empty() {
        heard.tools.extend(earlier.tool);
    }
    let reply = choose(world, parts, &heard, query)?;

    if let Some(failure) = &reply.failure {
        let mut said = Said::failed(&Problem::new(failure.status, failure.message.as_str()), family).like(&reply);
        said.headers.extend(failure.retry_after.map(|seconds| ("retry-after".into(), seconds.to_string())));
        return Ok(said);
    }
    if let Some(raw) = &reply.raw {
        let content = Content::Whole(raw.body.clone());
        return Ok(Said::new(raw.status, &raw.content_type, content).like(&reply));
    }
    if api == Api::Other {
        return Err(Problem::new(404, format!("The mock does not know {} {path}", parts.method)));
    }
    if is_call {
        check_fields(world.script.strict, api, family, &json)?;
    }
    if let Some(previous) = &heard.previous {
        world.memory.mark_continued(previous);
    }
    let (said, tool) = (heard.said.clone(), heard.tools.first().cloned());
    let answered = Answered { turns: heard.turns + 1, said, tool, continued: false };
    match api {
        Api::Responses if json["store"] != false => world.memory.keep(responses::id(number), answered),
        Api::Messages if json["thread"].is_object() => world.memory.keep(anthropic::id(number), answered),
        _ => {}
    }

    let text = reply.text.clone().unwrap_or_else(|| echo(&heard.last));
    let choices = if family == Family::Gemini { gemini::choices(&json) } else { chat::choices(&json) };
    let usage = report(&reply, &text, body.len(), choices);
    let turn = Turn { number, model: &heard.model, body: &json, reply: &reply, text: &text, usage };
    let whole = |value: Value| Content::Whole(value.to_string().into());
    let content = match (api, heard.stream) {
        (Api::Chat, false) => whole(chat::json(&turn)),
        (Api::Chat, true) => chat::events(&turn),
        (Api::Completions, false) => whole(completions::json(&turn)),
        (Api::Completions, true) => completions::events(&turn),
        (Api::Responses, false) => whole(responses::json(&turn)),
        (Api::Responses, true) => responses::events(&turn),
        (Api::Messages, false) => whole(anthropic::json(&turn)),
        (Api::Messages, true) => anthropic::events(&turn),
        (Api::StreamGenerate, _) => gemini::stream(&turn, query),
        (Api::Generate, _) => whole(gemini::json(&turn)),
        (Api::Embeddings, _) => whole(catalogue::embeddings(&turn)),
        (Api::CountTokens | Api::GeminiCountTokens, _) => whole(catalogue::count(family, &turn)),
        (Api::Models | Api::Other, _) => whole(catalogue::models(family, path)),
    };
    let content_type = match &content {
        Content::Events { crlf: true, .. } => "text/event-stream",
        Content::Events { .. } => "text/event-stream; charset=utf-8",
        _ => "application/json",
    };
    Ok(Said::new(200, content_type, content).like(&reply))
}

fn converse(api: Api, json: &Value, path: &str) -> Conversation {
    match api {
        Api::Chat => chat::read(json),
        Api::Completions => completions::read(json),
        Api::Responses => responses::read(json),
        Api::Messages | Api::CountTokens => anthropic::read(json),
        Api::Generate | Api::StreamGenerate | Api::GeminiCountTokens => gemini::read(json, path),
        Api::Embeddings => catalogue::read_embeddings(json),
        Api::Models | Api::Other => Conversation::default(),
    }
}

fn choose(world: &World, parts: &Parts, heard: &Conversation, query: &str) -> Result<Reply, Problem> {
    let heard = Heard {
        path: parts.uri.path(),
        headers: &parts.headers,
        model: &heard.model,
        last: &heard.last,
        said: &heard.said,
        turns: heard.turns,
        tools: &heard.tools,
    };
    let mut reply = world.script.choose(&heard).unwrap_or_default();
    directive::apply(&mut reply, &heard, query, &world.script.gate).map_err(|what| Problem::new(400, what))?;
    Ok(reply)
}

/// What is known of the answer that a request continues.
fn earlier_answer(world: &World, api: Api, heard: &Conversation) -> Result<Answered, Problem> {
    let Some(previous) = &heard.previous else { return Ok(Answered::default()) };
    let found = world.memory.recall(previous);
    match (api, found) {
        (Api::Messages, None) => Err(Problem {
            code: Some("thread_not_found"),
            ..Problem::new(404, format!("No thread was found for message {previous}."))
        }),
        (Api::Messages, Some(answer)) if answer.continued => Err(Problem {
            code: Some("thread_already_continued"),
            ..Problem::new(400, format!("Message {previous} has already been continued."))
        }),
        (_, Some(answer)) => Ok(answer),
        (_, None) => Err(Problem {
            param: Some("previous_response_id".into()),
            code: Some("previous_response_not_found"),
            ..Problem::new(400, format!("Previous response with id '{previous}' not found."))
        }),
    }
}

fn check_fields(strict: bool, api: Api, family: Family, body: &Value) -> Result<(), Problem> {
    let (known, required): (&[&str], &[&str]) = match api {
        Api::Chat => (chat::FIELDS, &["model", "messages"]),
        Api::Completions => (completions::FIELDS, &["model", "prompt"]),
        Api::Responses => (responses::FIELDS, &["model"]),
        Api::Embeddings => (catalogue::EMBEDDING_FIELDS, &["model", "input"]),
        Api::Messages => (anthropic::FIELDS, &["model", "messages", "max_tokens"]),
        Api::CountTokens => (anthropic::FIELDS, &["model", "messages"]),
        Api::GeminiCountTokens => (gemini::FIELDS, &[]),
        _ => (gemini::FIELDS, &["contents"]),
    };
    let unknown = body.as_object().and_then(|fields| fields.keys().find(|name| !known.contains(&name.as_str())));
    if let Some(field) = unknown.filter(|_| strict) {
        return Err(Problem::unknown_field(family, field));
    }
    match required.iter().find(|name| body[**name].is_null()) {
        Some(name) => {
            Err(Problem { param: Some((*name).into()), ..Problem::new(400, format!("{name}: Field required")) })
        }
        None => Ok(()),
    }
}

fn echo(last: &str) -> String {
    let heard = directive::strip(last);
    match heard.char_indices().nth(400) {
        Some((end, _)) => format!("You said: {}…", &heard[..end]),
        None => format!("You said: {heard}"),
    }
}

fn recorded(parts: &Parts, body: Bytes, connection: u64, ending: Ending) -> Recorded {
    Recorded {
        seq: 0,
        method: parts.method.to_string(),
        path: parts.uri.path_and_query().map_or(String::new(), ToString::to_string),
        version: parts.version,
        headers: parts.headers.clone(),
        body,
        connection,
        ending,
    }
}

fn request_id(seq: u64) -> String {
    format!("req_mock{seq:06}")
}

impl Said {
    fn new(status: u16, content_type: &str, content: Content) -> Said {
        Said { status, content_type: content_type.into(), content, headers: Vec::new(), faults: Vec::new() }
    }

    fn failed(problem: &Problem, family: Family) -> Said {
        let content = Content::Whole(problem.json(family).to_string().into());
        Said::new(problem.status, "application/json", content)
    }

    /// With the headers and faults of `reply`.
    fn like(mut self, reply: &Reply) -> Said {
        self.headers.extend(reply.headers.iter().cloned());
        self.faults.extend(reply.faults.iter().cloned());
        self
    }
}
