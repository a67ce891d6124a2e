//! What holds for every price and every usage.

use proptest::prelude::*;

use crate::money::{NanoUsd, PicoPerToken};
use crate::price::{Mode, Price, Rates, Tier, cost};
use crate::usage::Usage;

/// Tokens of a call in parts that do not overlap: input, audio input, cache read, cache write, cache write for an
/// hour, output, reasoning, audio output.
type Parts = [u64; 8];

fn usage_of(
    [input, audio_input, cache_read, cache_write, cache_write_1h, output, reasoning, audio_output]: Parts,
) -> Usage {
    Usage {
        input: input + audio_input,
        cache_read,
        cache_write,
        cache_write_1h,
        output: output + reasoning + audio_output,
        reasoning,
        audio_input,
        audio_output,
        estimated: false,
    }
}

fn parts() -> impl Strategy<Value = Parts> {
    prop::array::uniform8(0..400_000_u64)
}

fn rate() -> impl Strategy<Value = PicoPerToken> {
    (0..100_000_000_u64).prop_map(PicoPerToken)
}

fn some_rate() -> impl Strategy<Value = Option<PicoPerToken>> {
    prop::option::of(rate())
}

fn price() -> impl Strategy<Value = Price> {
    let rates = (rate(), rate(), some_rate(), some_rate(), some_rate(), some_rate(), some_rate(), some_rate());
    rates.prop_map(|(input, output, cache_read, cache_write, cache_write_1h, reasoning, audio_input, audio_output)| {
        Price {
            provider: "p".into(),
            model: "m".into(),
            mode: Mode::Chat,
            rates: Rates {
                input,
                output,
                cache_read,
                cache_write,
                cache_write_1h,
                reasoning,
                audio_input,
                audio_output,
            },
            tier: None,
            max_input_tokens: None,
            max_output_tokens: None,
            deprecated_on: None,
        }
    })
}

/// A tier that multiplies what the list names, as lists do.
fn tiered() -> impl Strategy<Value = Price> {
    (price(), 0..1_000_000_u64, 1..5_u64).prop_map(|(mut price, above_tokens, times)| {
        let raised = |rate: PicoPerToken| PicoPerToken(rate.0 * times);
        price.tier = Some(Tier {
            above_tokens,
            input: Some(raised(price.rates.input)),
            output: Some(raised(price.rates.output)),
            cache_read: price.rates.cache_read.map(raised),
            cache_write: price.rates.cache_write.map(raised),
        });
        price
    })
}

proptest! {
    #[test]
    fn more_tokens_never_cost_less(price in tiered(), parts in parts(), which in 0..8_usize, more in 1..300_000_u64) {
        let mut grown = parts;
        grown[which] += more;
        prop_assert!(cost(&price, &usage_of(grown)) >= cost(&price, &usage_of(parts)));
    }

    #[test]
    fn the_whole_is_the_sum_of_its_parts(price in price(), parts in parts()) {
        let whole = cost(&price, &usage_of(parts));
        let sum: NanoUsd = (0..8)
            .map(|which| {
                let mut only = [0; 8];
                only[which] = parts[which];
                cost(&price, &usage_of(only))
            })
            .sum();
        // Each part is rounded by half a nano-dollar at most.
        prop_assert!((whole - sum).0.abs() <= 4, "{whole:?} {sum:?}");
    }

    #[test]
    fn the_dearer_of_two_is_below_neither(one in tiered(), other in tiered(), parts in parts()) {
        let (usage, dearer) = (usage_of(parts), one.or_dearer(&other));
        prop_assert!(cost(&dearer, &usage) >= cost(&one, &usage).max(cost(&other, &usage)));
        prop_assert!(other.or_dearer(&one).rates == dearer.rates);
    }

    #[test]
    fn no_usage_breaks_it(price in tiered(), counts in prop::array::uniform8(any::<u64>())) {
        let [input, cache_read, cache_write, cache_write_1h, output, reasoning, audio_input, audio_output] = counts;
        let usage = Usage {
            input, cache_read, cache_write, cache_write_1h, output, reasoning, audio_input, audio_output, estimated: true,
        };
        prop_assert!(cost(&price, &usage) >= NanoUsd::ZERO);
    }

    #[test]
    fn no_name_breaks_the_search(provider in "[a-z./]{0,8}", model in "\\PC{0,40}") {
        let prices = super::prices();
        let _ = prices.find(&provider, &model);
        let _ = prices.find(&provider, &format!("arn:inference-profile/us.{model}-v1:0"));
        let _ = prices.find(&provider, &format!("ft:{model}@2024"));
    }
}
