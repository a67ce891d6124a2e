//! A rule about budgets names percentages; each is told once in a day, and the next day again.

use serde_json::json;
use sprag::acts::Adjustment;
use sprag_core::money::NanoUsd;
use sprag_testkit::client;

use crate::configured::Configured;
use crate::receiver::Receiver;

/// A hundred dollars a day.
const PERCENT: i64 = 1_000_000_000;

impl Configured {
    /// Corrects what the agent has spent today.
    async fn adjust(&self, amount: i64) {
        let (reason, by) = ("of the test".to_owned(), "anna".to_owned());
        let account = "agent:bot daily".parse().unwrap();
        let order = Adjustment { account, amount: NanoUsd(amount), reason, by };
        self.sprag.app.adjust_budget(order).await.unwrap();
    }

    async fn call(&self) {
        let body = json!({"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 9});
        let call = client::post_json(self.sprag.url("/v1/chat/completions"), &body).header("x-sprag-agent", "bot");
        assert_eq!(call.fetch().await.unwrap().status, 200);
    }
}

fn percentages(receiver: &Receiver) -> Vec<u64> {
    receiver.messages().iter().map(|message| message.json()["score"].as_f64().unwrap() as u64).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_percentage_is_told_once_a_day() {
    let receiver = Receiver::start().await;
    let text = format!(
        "agents.bot.budget.daily_limit = 100\n\
         [alerts.channels.ops]\ntype = \"webhook\"\nurl = \"{}\"\nallow_private = true\n\
         [[alerts.rules]]\non = \"budget\"\nthresholds = [30, 50]\n",
        receiver.url("/")
    );
    let place = Configured::start(&text).await;
    place.call().await;
    place.adjust(29 * PERCENT).await;
    assert_eq!(percentages(&receiver), [0; 0]);
    // A call takes it over the line, then a correction over the next.
    place.adjust(PERCENT - 1).await;
    place.call().await;
    receiver.has(1).await;
    place.adjust(25 * PERCENT).await;
    receiver.has(2).await;
    assert_eq!(percentages(&receiver), [30, 50]);
    let first = receiver.messages()[0].json();
    assert_eq!(first["subject"], "agent:bot daily at 30 %");
    // Down and up again within the day, long after the cooldown; and what no rule names.
    place.pass_seconds(3600);
    place.adjust(-30 * PERCENT).await;
    place.adjust(60 * PERCENT).await;
    place.pass_seconds(24 * 3600);
    place.call().await;
    place.adjust(35 * PERCENT).await;
    receiver.has(3).await;
    assert_eq!(percentages(&receiver), [30, 50, 30], "the next day begins anew");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_percentages_it_is_told_at_half_four_fifths_and_all() {
    let receiver = Receiver::start().await;
    let text = format!(
        "agents.bot.budget.daily_limit = 100\n\
         [alerts.channels.ops]\ntype = \"webhook\"\nurl = \"{}\"\nallow_private = true\n\
         [[alerts.rules]]\non = \"budget\"\n",
        receiver.url("/")
    );
    let place = Configured::start(&text).await;
    place.call().await;
    place.adjust(100 * PERCENT).await;
    receiver.has(3).await;
    let mut told = percentages(&receiver);
    told.sort_unstable();
    assert_eq!(told, [50, 80, 100]);
}
