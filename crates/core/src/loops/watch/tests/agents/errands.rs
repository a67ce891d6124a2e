//! Steps of agents that run errands: browsing, records, games, talk.

use serde_json::{Value, json};

use super::coding::think;
use super::{Step, call, talk, word};

pub(super) fn rows(n: usize) -> Step {
    let sql = format!("INSERT INTO products (name, price) VALUES ('{}', {});", word(n), n * 7 + 3);
    call(
        "",
        "sql",
        json!({"query": sql}),
        "Query executed successfully. 1 row affected. Transaction committed. No result set returned.",
    )
}

pub(super) fn mails(n: usize) -> Step {
    let arguments = json!({"to": format!("{}@example.org", word(n)), "subject": "Your invoice", "body": format!("Dear customer, please find invoice {} attached. Kind regards, the billing team", n + 100)});
    call(
        think(n),
        "send_email",
        arguments,
        r#"{"status": "success", "error": null, "message": "The e-mail was handed to the mail server", "errors": []}"#,
    )
}

pub(super) fn tickets(n: usize) -> Step {
    let arguments = json!({"ticket_id": format!("SUP-{}", 1000 + n), "status": "closed", "comment": "Closing because there was no activity for thirty days."});
    call(
        "",
        "update_ticket",
        arguments,
        r#"{"ok": true, "error": false, "message": "Ticket was updated and its watchers were notified"}"#,
    )
}

pub(super) fn frame(inner: &str) -> String {
    let menu: String = (0..45).map(|n| format!("- link \"{}\" [ref=e{n}]\n", word(n * 5 + 1))).collect();
    format!(
        "Page URL: https://shop.example.org/list\nPage Title: Webshop\nPage Snapshot:\n{menu}{inner}\n- contentinfo: Imprint Privacy Terms Contact"
    )
}

pub(super) fn next_page(n: usize) -> Step {
    let inner = format!("- heading \"{}\"\n- text: in stock\n- button \"Next\" [ref=e99]", word(n + 60));
    call(think(n), "browser_click", json!({"element": "Next button", "ref": "e99"}), frame(&inner))
}

pub(super) fn clicks(n: usize) -> Step {
    let inner = format!("- checkbox \"{}\" [checked] [ref=e{}]", word(n + 60), n + 50);
    call(
        "",
        "browser_click",
        json!({"element": format!("{} checkbox", word(n + 60)), "ref": format!("e{}", n + 50)}),
        frame(&inner),
    )
}

pub(super) fn form(n: usize) -> Step {
    call(
        "",
        "browser_type",
        json!({"element": format!("{} field", word(n)), "ref": format!("e{n}"), "text": word(n + 4)}),
        frame(&(0..=n).map(|at| format!("- textbox \"{}\": {}\n", word(at), word(at + 4))).collect::<String>()),
    )
}

pub(super) fn adventure(n: usize) -> Step {
    let moves = [
        "go north",
        "open door",
        "take lamp",
        "go east",
        "look",
        "go west",
        "inspect wall",
        "push statue",
        "go down",
        "read sign",
    ];
    let replies = [
        "You can't go that way.",
        "It is locked.",
        "Taken.",
        "You are in a dark room. Exits: north, west.",
        "Nothing special.",
        "You can't go that way.",
        "Nothing happens.",
        "The statue moves a little.",
        "You are in the cellar.",
        "It says: beware.",
    ];
    let at = (n * 7 + n / 10) % 10;
    call("", "act", json!({"command": format!("{} {}", moves[at], word(n))}), replies[(n * 3) % 10])
}

pub(super) fn chess(n: usize) -> Step {
    let files = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let (from, to) = (files[n % 8], files[(n * 3 + 1) % 8]);
    call(
        "",
        "move",
        json!({"move": format!("{from}{}{to}{}", n % 7 + 1, (n / 3) % 8 + 1)}),
        format!("Move accepted. Your opponent answers {to}{}{from}{}. It is your turn.", n % 6 + 2, n % 8 + 1),
    )
}

pub(super) fn classifies(n: usize) -> Step {
    let label = ["positive", "negative", "neutral"][n % 3];
    talk(
        label,
        format!(
            "Review: The {} arrived {} and the {} was {}.",
            word(n),
            ["late", "early", "on time"][n % 3],
            word(n + 3),
            ["broken", "fine", "great"][(n + 1) % 3]
        ),
    )
}

pub(super) fn translates(n: usize) -> Step {
    talk(format!("Der {} ist bereit.", word(n + 2)), format!("Translate into German: The {} is ready.", word(n + 3)))
}

pub(super) fn service(n: usize) -> Step {
    let asks = [
        "my order is late",
        "I want to change the address to Elm Street",
        "can I have a refund for the blue jacket",
        "what about the shoes",
        "do you ship to Norway",
        "please cancel the second item",
        "which card was charged",
        "when will it arrive",
        "thank you",
        "one more thing: my invoice has the wrong name",
        "it should be Miller",
        "is there a discount for students",
    ];
    let says = [
        "I have found your order; it will leave the warehouse tomorrow.",
        "Done, the parcel goes to Elm Street.",
        "The refund for the jacket will take five days.",
        "The shoes can be returned until Friday.",
        "Yes, shipping to Norway costs twelve euros.",
        "The second item was cancelled.",
        "The card ending in 4417 was charged.",
        "It should arrive on Thursday.",
        "You are welcome! Is there anything else I can help you with?",
        "Which name should be on the invoice?",
        "The invoice now names Miller.",
        "Students get ten percent off with a valid card.",
    ];
    talk(format!("{} Is there anything else I can help you with?", says[n % 12]), format!("{}, please", asks[n % 12]))
}

pub(super) fn small_talk(n: usize) -> Step {
    let user = [
        "hi",
        "how are you?",
        "I am fine too",
        "what is your name?",
        "nice",
        "tell me a joke",
        "haha",
        "another one",
        "good one",
        "thanks",
        "ok",
        "do you like music?",
        "which kind?",
        "me too",
        "cool",
        "it rains here",
        "yes, a lot",
        "I will stay at home",
        "maybe read a book",
        "a crime story",
        "bye",
    ];
    let model = [
        "Hello!",
        "I am fine, and you?",
        "Glad to hear that.",
        "I am an assistant.",
        "Thank you!",
        "Why did the chicken cross the road? To get to the other side.",
        "I am glad you like it.",
        "What is brown and sticky? A stick.",
        "Thank you!",
        "You are welcome!",
        "Great.",
        "I enjoy talking about it.",
        "Jazz is interesting.",
        "Good taste!",
        "Indeed.",
        "Do you have an umbrella?",
        "Oh no.",
        "That is a good idea.",
        "Which one?",
        "Exciting!",
        "Good-bye!",
    ];
    talk(model[n % 21], user[(n + 1) % 21])
}

pub(super) fn analyst(n: usize) -> Step {
    let sql = format!(
        "SELECT region, SUM(amount) FROM sales WHERE month = '2026-{:02}' AND year = {} GROUP BY region",
        n % 12 + 1,
        2000 + n / 12
    );
    let result =
        format!("region | sum\nnorth | {}\nsouth | {}\nwest | {}", n * 731 % 997, n * 417 % 991, n * 977 % 983);
    call("", "sql", json!({"query": sql}), result)
}

pub(super) fn memories(n: usize) -> Step {
    call(
        "",
        "save_memory",
        json!({"key": word(n), "text": format!("The user likes {} more than {}", word(n + 1), word(n + 2))}),
        "The memory was stored and will be available in later conversations with this user.",
    )
}

pub(super) fn parallel(n: usize) -> Step {
    let calls = (0..3).map(|at| ("read".to_owned(), json!({"path": format!("src/{}.rs", word(n * 3 + at))}))).collect();
    let results = (0..3).map(|at| Value::from(format!("pub fn {}() -> u32 {{ {} }}", word(n * 3 + at), n))).collect();
    Step { calls, results, ..Step::default() }
}

pub(super) fn framed(n: usize) -> Step {
    let header = "=== Corporate Data Gateway v2 === This output is confidential. Access is logged. Do not share outside the company. ";
    let footer = " === End of record === For questions contact the data platform team. Retention policy applies to everything shown above.";
    call("", "get_record", json!({"name": word(n)}), format!("{header}owner: {}{footer}", word(n + 5)))
}

pub(super) fn framed_same_question(n: usize) -> Step {
    let header = "=== Message queue consumer === This output is confidential. Access is logged. Do not share outside the company. ";
    let footer = " === End of message === For questions contact the data platform team. Retention policy applies to everything shown above.";
    call("", "next_message", json!({}), format!("{header}body: please ship {} to {}{footer}", word(n + 5), word(n * 7)))
}

pub(super) fn screenshots(n: usize) -> Step {
    let image = format!("iVBORw0KGgo{:x}{}", n * 7_919 + 99_991, "QUJD".repeat(40));
    call(
        "",
        "computer",
        json!({"action": "scroll", "direction": "down", "amount": 5}),
        json!([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": image}}]),
    )
}

pub(super) fn pings(n: usize) -> Step {
    call(
        "",
        "http_get",
        json!({"url": format!("https://{}.example.org/health", word(n))}),
        r#"{"status":"ok","errors":[],"failed_checks":0,"version":"2.14.0","uptime":"good"}"#,
    )
}

pub(super) fn not_found_names(n: usize) -> Step {
    match n % 4 {
        3 => call(think(n), "lookup", json!({"user": word(n)}), format!("found {} in Berlin", word(n))),
        _ => call(think(n), "lookup", json!({"user": word(n)}), format!("Error: user '{}' not found", word(n))),
    }
}
