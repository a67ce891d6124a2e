use proptest::prelude::*;

use super::*;
use crate::money::PicoPerToken;
use crate::price::{Rates, Tier, cost};
use crate::usage::Usage;

/// One dollar per million tokens of input, ten of output.
fn price() -> Price {
    Price {
        provider: "p".into(),
        model: "m".into(),
        mode: Mode::Chat,
        rates: Rates { input: PicoPerToken(1_000_000), output: PicoPerToken(10_000_000), ..Rates::default() },
        tier: None,
        max_input_tokens: Some(200_000),
        max_output_tokens: Some(8_000),
        deprecated_on: None,
    }
}

fn asked(prompt_bytes: u64) -> Asked {
    Asked { prompt_bytes, choices: 1, ..Asked::default() }
}

/// Input and output tokens of an estimate at the price above, and the guessed output.
fn tokens(estimate: Estimate) -> (i64, i64, i64) {
    let output = (estimate.amount.0 / 1_000 - i64::try_from(estimate.tokens).unwrap()) / 9;
    (estimate.amount.0 / 1_000 - 10 * output, output, estimate.guessed.0 / 10_000)
}

#[test]
fn the_worst_case_is_bounded_by_bytes_and_by_the_model() {
    let cases = [
        ("bytes and what is around them", asked(10_000), (12_048, 8_000)),
        ("the longest prompt", asked(1_000_000), (200_000, 8_000)),
        ("an earlier answer", Asked { is_open_ended: true, ..asked(10) }, (200_000, 8_000)),
        ("pictures", Asked { attachments: 2, ..asked(1_000) }, (1_000 + 2_048 + 131_072, 8_000)),
        ("what may be text", Asked { doubtful_bytes: 50_000, ..asked(1_000) }, (51_000 + 2_048, 8_000)),
        ("a short answer", Asked { max_output_tokens: Some(100), ..asked(0) }, (2_048, 100)),
        ("no answer is longer than asked", Asked { max_output_tokens: Some(9_000), ..asked(0) }, (2_048, 9_000)),
        ("three answers", Asked { max_output_tokens: Some(100), choices: 3, ..asked(0) }, (2_048, 300)),
        ("none counts as one", Asked { choices: 0, ..asked(0) }, (2_048, 8_000)),
    ];
    for (what, asked, (input, output)) in cases {
        let estimate = estimate(&asked, &price(), None, Reserve::WorstCase);
        assert_eq!(tokens(estimate), (input, output, 0), "{what}");
        assert_eq!(estimate.least(), estimate.amount, "{what}");
    }
    let unlisted = Price { max_input_tokens: None, max_output_tokens: None, ..price() };
    let open_ended = Asked { is_open_ended: true, ..asked(0) };
    assert_eq!(tokens(estimate(&open_ended, &unlisted, None, Reserve::WorstCase)), (1_000_000, 128_000, 0));
}

#[test]
fn the_worst_case_takes_the_dearest_rate_that_may_apply() {
    let dollars = |input: u64| PicoPerToken(input * 1_000_000);
    let mut dear = price();
    dear.rates.cache_write_1h = Some(dollars(2));
    dear.rates.reasoning = Some(dollars(20));
    dear.rates.audio_input = Some(dollars(40));
    let amount = |price: &Price, asked: &Asked| estimate(asked, price, None, Reserve::WorstCase).amount.0 / 1_000;
    let short = Asked { max_output_tokens: Some(1), ..asked(952) };
    assert_eq!(amount(&dear, &short), 3_000 * 2 + 20);
    assert_eq!(amount(&dear, &Asked { attachments: 1, ..short }), (3_000 + 65_536) * 40 + 20, "it may be audio");
    dear.tier = Some(Tier { above_tokens: 3_000, input: Some(dollars(5)), ..Tier::default() });
    assert_eq!(amount(&dear, &short), 3_000 * 2 + 20, "not above the tier");
    assert_eq!(amount(&dear, &Asked { prompt_bytes: 953, ..short }), 3_001 * 5 + 20);
    let cheap = Tier { above_tokens: 10, input: Some(dollars(1)), cache_write: Some(dollars(1)), ..Tier::default() };
    let mut cheaper = price();
    (cheaper.rates.input, cheaper.tier) = (dollars(2), Some(cheap));
    assert_eq!(amount(&cheaper, &short), 3_000 * 2 + 10, "a short prompt is not above the tier");
    dear.max_input_tokens = Some(2_500);
    assert_eq!(amount(&dear, &short), 3_000 * 2 + 20, "a tier beyond the longest prompt");
    let embedding = Price { mode: Mode::Embedding, ..price() };
    assert_eq!(amount(&embedding, &asked(952)), 3_000);
}

#[test]
fn the_first_of_its_kind_is_guessed() {
    let cases = [
        ("no more than usual", asked(4_000), (1_000, 4_096, 4_096)),
        ("as long as asked", Asked { max_output_tokens: Some(6_000), ..asked(4_000) }, (1_000, 6_000, 6_000)),
        ("as long as can be", Asked { max_output_tokens: Some(9_000), ..asked(4_000) }, (1_000, 8_000, 8_000)),
        ("pictures", Asked { attachments: 2, ..asked(4_000) }, (3_048, 4_096, 4_096)),
        ("two answers", Asked { choices: 2, ..asked(4_000) }, (1_000, 8_192, 8_192)),
    ];
    for (what, asked, expected) in cases {
        assert_eq!(tokens(estimate(&asked, &price(), None, Reserve::Expected)), expected, "{what}");
        assert_eq!(tokens(estimate(&asked, &price(), Some(&Habits::default()), Reserve::Expected)), expected, "{what}");
    }
    let estimate = estimate(&asked(4_000), &price(), None, Reserve::Expected);
    assert_eq!(estimate.least(), NanoUsd(1_000_000), "the input is no guess");
}

#[test]
fn later_ones_go_by_those_before() {
    let mut habits = Habits::default();
    habits.learn(4_000, 1_000.0, 100);
    habits.learn(4_000, 1_000.0, 300);
    let expected = |asked: &Asked, habits: &Habits| tokens(estimate(asked, &price(), Some(habits), Reserve::Expected));
    assert_eq!(expected(&asked(8_000), &habits), (2_000, 200, 0));
    assert_eq!(expected(&Asked { max_output_tokens: Some(50), ..asked(8_000) }, &habits), (2_000, 50, 0));
    assert_eq!(expected(&Asked { choices: 2, ..asked(8_000) }, &habits), (2_000, 400, 0));
    // Caching sets in: the last call costs a tenth.
    habits.learn(8_000, 200.0, 200);
    assert_eq!(expected(&asked(8_000), &habits), (1_550, 200, 0));
    for _ in 0..20 {
        habits.learn(8_000, 200.0, 200);
    }
    assert!(expected(&asked(8_000), &habits).0 < 210);
}

#[test]
fn habits_are_small_and_bear_anything() {
    assert!(size_of::<Habits>() <= 12);
    let mut habits = Habits::default();
    habits.learn(0, 5.0, 7);
    habits.learn(1, f64::NAN, 7);
    assert_eq!((habits.calls, habits.output_tokens, habits.tokens_per_byte), (2, 7.0, 0.0));
    let first = estimate(&asked(4_000), &price(), Some(&habits), Reserve::Expected);
    assert_eq!(tokens(first), (1_000, 7, 0), "the input as if it were the first");
    habits = Habits { calls: u32::MAX, output_tokens: f32::MAX, tokens_per_byte: f32::INFINITY };
    habits.learn(u64::MAX, f64::MAX, u64::MAX);
    let most = estimate(&asked(u64::MAX), &price(), Some(&habits), Reserve::Expected);
    assert_eq!(most.amount, NanoUsd(i64::MAX));
}

fn rate() -> impl Strategy<Value = PicoPerToken> {
    (0..100_000_000_u64).prop_map(PicoPerToken)
}

/// Bounds are met at their ends, so small numbers and the ends come often.
fn few_or_many(few: u64, many: u64) -> impl Strategy<Value = u64> {
    prop_oneof![0..few, 0..many]
}

fn percent() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(100), 0..=100_u64]
}

fn any_price() -> impl Strategy<Value = Price> {
    let some = || prop::option::of(rate());
    let rates = (rate(), rate(), some(), some(), some(), some(), some(), some());
    let tier = prop::option::of((few_or_many(3_000, 300_000), some(), some(), some(), some()));
    let most = || prop::option::of(1_000..300_000_u64);
    (rates, tier, most(), most()).prop_map(|(rates, tier, max_input_tokens, max_output_tokens)| {
        let (input, output, cache_read, cache_write, cache_write_1h, reasoning, audio_input, audio_output) = rates;
        let rates =
            Rates { input, output, cache_read, cache_write, cache_write_1h, reasoning, audio_input, audio_output };
        let tier = tier.map(|(above_tokens, input, output, cache_read, cache_write)| Tier {
            above_tokens,
            input,
            output,
            cache_read,
            cache_write,
        });
        Price { rates, tier, max_input_tokens, max_output_tokens, ..price() }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_usage_costs_more_than_the_worst_case(
        price in any_price(),
        (prompt_bytes, attachments, is_open_ended) in (few_or_many(1_000, 400_000), 0..3_u32, any::<bool>()),
        max_output_tokens in prop::option::of(0..100_000_u64),
        choices in 1..4_u32,
        shares in prop::array::uniform5(percent()),
        (fill, audio, reasoning, audio_output) in (percent(), percent(), percent(), percent()),
    ) {
        let asked = Asked { prompt_bytes, attachments, doubtful_bytes: 0, is_open_ended, max_output_tokens, choices };
        let most_output = max_output_tokens.or(price.max_output_tokens).unwrap_or(ANSWER_TOKENS) * u64::from(choices);
        let prompt = most_input(&asked, &price) * fill / 100;
        let all = shares[..4].iter().sum::<u64>().max(1);
        let [input, cache_read, cache_write, cache_write_1h] = [0, 1, 2, 3].map(|part| prompt * shares[part] / all);
        let output = most_output * shares[4] / 100;
        let usage = Usage {
            input,
            cache_read,
            cache_write,
            cache_write_1h,
            output,
            reasoning: output * reasoning / 100,
            audio_input: if attachments > 0 || is_open_ended { input * audio / 100 } else { 0 },
            audio_output: output * audio_output / 100,
            estimated: false,
        };
        let worst = estimate(&asked, &price, None, Reserve::WorstCase);
        prop_assert!(cost(&price, &usage) <= worst.amount, "{usage:?} costs {} of {}", cost(&price, &usage), worst.amount);
    }
}

#[test]
fn habits_come_back_as_they_were_packed() {
    let mut habits = Habits::default();
    for (bytes, input, output) in [(0, 0.0, 0), (4000, 900.0, 300), (9000, 400.5, 7)] {
        assert_eq!(Habits::unpack(&habits.pack()), Some(habits));
        habits.learn(bytes, input, output);
    }
    let bytes = habits.pack();
    assert_eq!((Habits::unpack(&bytes), bytes.len()), (Some(habits), 13));
    assert_eq!(Habits::unpack(&bytes[..12]), None, "cut");
    assert_eq!(Habits::unpack(&[&bytes[..], &[0]].concat()), None, "more");
    assert_eq!(Habits::unpack(&[&[FORM + 1], &bytes[1..]].concat()), None, "another form");
    for no_amount in [f32::NAN, f32::INFINITY, -1.0] {
        let bytes = Habits { output_tokens: no_amount, ..habits }.pack();
        assert_eq!(Habits::unpack(&bytes), None);
        let bytes = Habits { tokens_per_byte: no_amount, ..habits }.pack();
        assert_eq!(Habits::unpack(&bytes), None);
    }
}
