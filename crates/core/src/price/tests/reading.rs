//! Reading a price list, and saying what is wrong with it.

use super::{LIST, price_of, usd};
use crate::limits::{MODEL_NAME_BYTES, PRICE_ROWS, PRICE_TABLE_BYTES};
use crate::price::{Mode, Prices};

fn error(text: &str) -> String {
    Prices::load(text).unwrap_err().to_string()
}

#[test]
fn reads_every_cell() {
    let price = price_of("anthropic", "claude-haiku-5-5");
    assert_eq!(price.mode, Mode::Chat);
    assert_eq!(price.rates.cache_write_1h, Some(usd("0.2")));
    let tier = price.tier.unwrap();
    assert_eq!((tier.above_tokens, tier.cache_write), (100_000, Some(usd("0.625"))));
    let price = price_of("openai", "gpt-4o");
    assert_eq!((price.max_input_tokens, price.max_output_tokens), (Some(128_000), Some(16_384)));
    assert_eq!(price.deprecated_on, Some("2027-01-14".parse().unwrap()));
    assert_eq!(price_of("openai", "gpt-audio").rates.audio_output, Some(usd("64")));
    assert_eq!(Prices::load(LIST).unwrap().gathered(), Some("2026-11"));
}

#[test]
fn tabs_commas_and_any_order_of_columns() {
    for text in
        ["output\tmodel\tprovider\tinput\n2\tm\tp\t1\n", "\n# x\nprovider, model, input, output\r\np, m, 1, 2\r\n"]
    {
        let prices = Prices::load(text).unwrap();
        let price = prices.find("p", "m").unwrap();
        assert_eq!((price.rates.input, price.rates.output), (usd("1"), usd("2")));
        assert_eq!(prices.gathered(), None);
    }
}

#[test]
fn errors_name_line_and_column() {
    let list = |row: &str| {
        format!("# list\nprovider,model,mode,input,output,tier_input,deprecated_on\np,ok,chat,1,1\n{row}\n")
    };
    for (row, expected) in [
        (
            "p,m,chat,1x,1",
            "line 4, column 4 (`input`): `1x` is not an amount of dollars; expected a plain number such as 0.25",
        ),
        ("p,m,chat,,1", "line 4, column 4 (`input`): a price is needed"),
        ("p,m,chat,1", "line 4, column 5 (`output`): a price is needed, except for embeddings"),
        ("p,m,paint,1,1", "line 4, column 3 (`mode`): `paint` is not one of chat, completion, responses, embedding"),
        ("p,ok,chat,1,1", "line 4, column 2 (`model`): `ok` of p is listed twice"),
        ("p,m,chat,1,1,2", "line 4, column 6 (`tier_input`): a tier price without `tier_above_tokens`"),
        ("p,m,chat,1,1,,soon", "line 4, column 7 (`deprecated_on`): `soon` is not a day such as 2026-11-30"),
        ("p,m,chat,1,1,,,9", "line 4: 8 cells, but only 7 columns have a name"),
        (
            "p,\"m\",chat,1,1",
            "line 4, column 2 (`model`): a name of 1 to 256 plain characters without quotes is needed",
        ),
    ] {
        assert_eq!(error(&list(row)), expected);
    }
}

#[test]
fn errors_in_the_line_of_columns() {
    assert_eq!(error("# only this\n"), "line 1: there is no line of column names");
    assert_eq!(error("provider,model,output\n"), "line 1: the column `input` is missing");
    assert_eq!(error("provider,model,input,input\n"), "line 1, column 4 (`input`): the column is named twice");
    assert!(
        error("provider,modle\n").starts_with("line 1, column 2 (`modle`): unknown column; known are provider, model")
    );
}

#[test]
fn names_rows_and_size_are_bounded() {
    let named = |length| Prices::load(&format!("provider,model,input,output\np,{},1,1\n", "m".repeat(length)));
    assert!(named(MODEL_NAME_BYTES).is_ok());
    assert!(named(MODEL_NAME_BYTES + 1).is_err());

    let rows: String = (0..PRICE_ROWS).map(|number| format!("p,m{number},1,1\n")).collect();
    let full = format!("provider,model,input,output\n{rows}");
    assert_eq!(Prices::load(&full).unwrap().rows().len(), PRICE_ROWS);
    assert_eq!(
        error(&format!("{full}p,last,1,1\n")),
        format!("line {}: more than {PRICE_ROWS} prices", PRICE_ROWS + 2)
    );

    let head = "provider,model,input,output\n#";
    let padded = format!("{head}{}", "x".repeat(PRICE_TABLE_BYTES - head.len()));
    assert!(Prices::load(&padded).is_ok());
    assert!(Prices::load(&format!("{padded}x")).is_err());
}
