//! One conversation in each dialect, sent the way its clients send it, is one run.

use serde_json::{Value, json};

use crate::say;
use crate::stage::{Play, Said, Stage};

/// Places of the answers in their run: the same run, steps from 1 on.
fn one_run(said: &[Said]) {
    let places: Vec<(&str, u32)> = said.iter().map(Said::place).collect();
    let expected: Vec<(&str, u32)> = (1..).take(said.len()).map(|step| (said[0].run.as_str(), step)).collect();
    assert_eq!(places, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn chat_with_tools_streamed_and_not() {
    for is_stream in [false, true] {
        let stage = Stage::start().await;
        let mut messages = vec![json!({"role": "system", "content": "It is 10:00."}), say::user("Fix it.")];
        let mut said = Vec::new();
        for step in 0..4 {
            messages[0]["content"] = format!("It is 10:0{step}.").into();
            let answer = say::chat_message("I look.", &["a.rs", "b.rs"]);
            let play = if is_stream { say::chat_stream(&answer).piece(5) } else { say::chat(&answer) };
            let body = json!({"model": "gpt-4o", "messages": messages, "stream": is_stream});
            said.push(stage.ask("/v1/chat/completions", &body, play).await);
            let mut echo = answer.clone();
            echo["content"] = Value::Null;
            let results = [1, 0].map(|index| say::tool_result(&answer, index, "fn main() {}"));
            messages.extend([echo].into_iter().chain(results));
        }
        one_run(&said);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn anthropic_with_moving_marks_and_dropped_thoughts() {
    for is_stream in [false, true] {
        let stage = Stage::start().await;
        let mut turns = vec![vec![json!({"type": "text", "text": "Fix the tests."})]];
        let mut answers: Vec<Vec<Value>> = Vec::new();
        let mut said = Vec::new();
        for step in 0..5 {
            let last = turns.len() - 1;
            let mut messages = Vec::new();
            for (at, turn) in turns.iter().enumerate() {
                let mut turn = json!({"role": "user", "content": turn});
                if at == last {
                    turn["content"][0]["cache_control"] = json!({"type": "ephemeral"});
                } else if turn["content"][0]["type"] == "text" {
                    turn["content"] = turn["content"][0]["text"].clone();
                }
                messages.push(turn);
                if at == 0 {
                    let environment = json!([{"type": "text", "text": "# Environment"}]);
                    let flipped = if step % 2 == 0 { environment } else { json!("# Environment") };
                    messages.push(json!({"role": "system", "content": flipped}));
                }
                if let Some(answer) = answers.get(at) {
                    let is_kept = |block: &&Value| block["type"] != "thinking" || at + 1 == answers.len();
                    let kept: Vec<&Value> = answer.iter().filter(is_kept).collect();
                    messages.push(json!({"role": "assistant", "content": kept}));
                }
            }
            let id = say::unique("toolu_");
            let answer = vec![
                json!({"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}),
                json!({"type": "text", "text": "I look."}),
                json!({"type": "tool_use", "id": id, "name": "read", "input": {"path": "a", "from": step}}),
            ];
            let message = say::unique("msg_");
            let play = match is_stream {
                true => say::anthropic_stream(&message, &answer).piece(11),
                false => say::anthropic(&message, &answer),
            };
            let body =
                json!({"model": "claude-haiku-4-5", "max_tokens": 100, "messages": messages, "stream": is_stream});
            said.push(stage.ask("/v1/messages?beta=true", &body, play).await);
            answers.push(answer);
            turns.push(vec![json!({"type": "tool_result", "tool_use_id": id, "content": "1 failed"})]);
        }
        one_run(&said);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_answer_goes_on_in_its_run() {
    let stage = Stage::start().await;
    let block = |text: &str| json!({"type": "text", "text": text});
    let body = |messages: Value| json!({"model": "claude-haiku-4-5", "max_tokens": 100, "messages": messages});
    let ask = async |messages: Value, text: &str| {
        stage.ask("/v1/messages", &body(messages), say::anthropic(&say::unique("msg_"), &[block(text)])).await
    };
    let opening = say::user("Search.");
    let first = ask(json!([opening]), "I search the first half.").await;
    let paused = json!({"role": "assistant", "content": [block("I search the first half.")]});
    let second = ask(json!([opening, paused]), " And the second.").await;
    let whole = json!({"role": "assistant", "content": "I search the first half. And the second."});
    let third = ask(json!([opening, whole, say::user("Thanks.")]), "You are welcome.").await;
    one_run(&[first, second, third]);
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_with_full_input() {
    for is_stream in [false, true] {
        let stage = Stage::start().await;
        let mut input = json!("Fix it.");
        let mut said = Vec::new();
        for step in 0..4 {
            let call = json!({"type": "function_call", "id": say::unique("fc_"), "call_id": say::unique("call_"),
                "name": "read", "arguments": json!({"step": step}).to_string(), "status": "completed"});
            let text = json!({"type": "message", "id": say::unique("msg_"), "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "I look.", "annotations": []}]});
            let output = if step == 0 { vec![text] } else { vec![text, call.clone()] };
            let id = say::unique("resp_");
            let play = match is_stream {
                true => say::responses_stream(&id, &output).piece(9),
                false => say::responses(&id, &output),
            };
            let body = json!({"model": "gpt-4.1", "input": input, "stream": is_stream});
            said.push(stage.ask("/v1/responses", &body, play).await);
            if step == 0 {
                // The first question was a string; from now on it is the first item of a list.
                input = json!([{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix it."}]}]);
            }
            let items = input.as_array_mut().unwrap();
            items.push(json!({"type": "reasoning", "id": say::unique("rs_"), "summary": []}));
            items.extend(output);
            items.push(match step {
                0 => json!({"role": "user", "content": "Go on."}),
                _ => json!({"type": "function_call_output", "call_id": call["call_id"], "output": "x"}),
            });
        }
        one_run(&said);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_continued_by_their_id() {
    for is_stream in [false, true] {
        let stage = Stage::start().await;
        let (mut said, mut previous) = (Vec::new(), Value::Null);
        for step in 0..3 {
            let id = say::unique("resp_");
            let output =
                [json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]})];
            let play =
                if is_stream { say::responses_stream(&id, &output).piece(9) } else { say::responses(&id, &output) };
            let body = json!({"model": "gpt-4.1", "input": format!("turn {step}"), "previous_response_id": previous, "stream": is_stream});
            said.push(stage.ask("/v1/responses", &body, play).await);
            previous = id.into();
        }
        one_run(&said);

        let (mut said, mut thread) = (Vec::new(), json!({"type": "create"}));
        for step in 0..3 {
            let id = say::unique("msg_");
            let blocks = [json!({"type": "text", "text": "ok"})];
            let play =
                if is_stream { say::anthropic_stream(&id, &blocks).piece(9) } else { say::anthropic(&id, &blocks) };
            let body = json!({"model": "claude-haiku-4-5", "max_tokens": 9, "thread": thread, "stream": is_stream,
                "messages": [say::user(&format!("turn {step}"))]});
            said.push(stage.ask("/v1/messages", &body, play).await);
            thread = json!({"type": "continue", "previous_message_id": id});
        }
        one_run(&said);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn gemini_with_and_without_ids() {
    // Ids of the provider, none at all, and made up by the client.
    for (given, echoed) in [(true, true), (false, false), (false, true)] {
        for is_stream in [false, true] {
            let stage = Stage::start().await;
            let mut contents = vec![json!({"role": "user", "parts": [{"text": "Fix it."}]})];
            let mut said = Vec::new();
            for step in 0..4 {
                let mut part = json!({"functionCall": {"name": "read", "args": {"path": "a", "from": step}}, "thoughtSignature": "c2ln"});
                let id = format!("read_17947297733{step}5_0");
                if given {
                    part["functionCall"]["id"] = id.clone().into();
                }
                let parts = [json!({"text": "I look."}), part.clone()];
                let (method, play) = match is_stream {
                    true => ("streamGenerateContent?alt=sse", say::gemini_stream(&parts).piece(9)),
                    false => ("generateContent", say::gemini(&parts)),
                };
                let path = format!("/v1beta/models/gemini-2.5-flash:{method}");
                said.push(stage.ask(&path, &json!({"contents": contents}), play).await);
                if echoed {
                    part["functionCall"]["id"] = id.into();
                }
                contents.push(json!({"role": "model", "parts": [{"text": "I look."}, part]}));
                contents.push(json!({"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": "x"}}}]}));
            }
            one_run(&said);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn transcripts_of_completions() {
    let stage = Stage::start().await;
    let mut prompt = "A talk.\nHuman: Hello, who are you?\nAI:".to_owned();
    let mut said = Vec::new();
    for step in 0..3 {
        let answer = format!(" I am number {step}.\nReally.");
        let body = json!({"model": "gpt-3.5-turbo-instruct", "prompt": prompt});
        said.push(stage.ask("/v1/completions", &body, say::completion(&answer)).await);
        prompt = format!("{prompt}{}\nHuman: And then?\nAI:", answer.trim_end());
    }
    one_run(&said);
    let other = json!({"model": "gpt-3.5-turbo-instruct", "prompt": "A talk.\nHuman: Something else\nAI:"});
    let other = stage.ask("/v1/completions", &other, say::completion("x")).await;
    assert_ne!(other.run, said[0].run, "the same first line is not the same talk");
}

#[tokio::test(flavor = "multi_thread")]
async fn few_shot_examples_do_not_tie_questions_together() {
    let stage = Stage::start().await;
    let ask = async |question: &str| {
        let messages = json!([say::user("2+2"), {"role": "assistant", "content": "4"}, say::user("3+3"),
            {"role": "assistant", "content": "6"}, say::user(question)]);
        let play: Play = say::chat(&say::chat_message("8", &[]));
        stage.ask("/v1/chat/completions", &json!({"model": "gpt-4o", "messages": messages}), play).await.run
    };
    assert_ne!(ask("4+4").await, ask("5+3").await);
}
