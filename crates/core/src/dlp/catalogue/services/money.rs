//! Payments, shops, parcels, travel.

use crate::dlp::tokens::alphabet::{
    ALNUM, ANY_HEX, DOTTED, HEX, HEX_DASH, PADDED, SMALL_ALNUM, URL_SAFE, URL_SAFE_PADDED, WORD,
};
use crate::dlp::tokens::format::{Vendor, begins, vendor};

pub(in crate::dlp::catalogue) const VENDORS: &[Vendor] = &[
    vendor(
        "STRIPE_KEY",
        "Stripe secret key",
        "`sk_live_`, `rk_live_`, the same with `test` or `prod`, and 10 or more letters and digits; `whsec_`",
        &[
            begins(&["sk_live_", "sk_test_", "sk_prod_", "rk_live_", "rk_test_", "rk_prod_"]).run(PADDED, 10).digits(1),
            begins(&["whsec_"]).run(PADDED, 24).digits(1),
        ],
    ),
    vendor(
        "SQUARE_TOKEN",
        "Square token",
        "`sq0atp-`, `sq0csp-` or `sq0idp-` and 22 or 43 characters; `EAAA` and 60",
        &[
            begins(&["sq0atp-", "sq0csp-", "sq0idp-"]).run(URL_SAFE, 22),
            begins(&["EAAA"]).between(URL_SAFE, 22, 60).mixed(),
        ],
    ),
    vendor(
        "BRAINTREE_TOKEN",
        "Braintree access token",
        "`access_token$production$` or `$sandbox$`, 16 letters and digits, `$` and 32",
        &[begins(&["access_token$production$", "access_token$sandbox$"]).run(SMALL_ALNUM, 16).text("$").run(HEX, 32)],
    ),
    vendor(
        "PLAID_TOKEN",
        "Plaid access token",
        "`access-sandbox-`, `access-development-` or `access-production-` and a UUID",
        &[begins(&["access-sandbox-", "access-development-", "access-production-"]).exactly(HEX_DASH, 36)],
    ),
    vendor(
        "RAZORPAY_KEY",
        "Razorpay key",
        "`rzp_live_` or `rzp_test_` and 14 letters and digits",
        &[begins(&["rzp_live_", "rzp_test_"]).run(ALNUM, 14).digits(1)],
    ),
    vendor(
        "PADDLE_KEY",
        "Paddle API key",
        "`pdl_live_apikey_` or `pdl_sdbx_apikey_` and letters, digits, `_`",
        &[begins(&["pdl_live_apikey_", "pdl_sdbx_apikey_"]).run(WORD, 30).digits(1)],
    ),
    vendor(
        "FLUTTERWAVE_KEY",
        "Flutterwave key",
        "`FLWSECK` or `FLWPUBK`, `_TEST-` or `-`, and 12 or more hexadecimal digits",
        &[
            begins(&["FLWSECK_TEST-", "FLWSECK-", "FLWSECK_TEST", "FLWPUBK_TEST-", "FLWPUBK-"])
                .run(ALNUM, 12)
                .digits(2),
            begins(&["FLWSECK-", "FLWSECK_TEST-", "FLWPUBK-", "FLWPUBK_TEST-"])
                .exactly(ALNUM, 32)
                .text("-")
                .run(ALNUM, 1),
        ],
    ),
    vendor(
        "SHOPIFY_TOKEN",
        "Shopify token",
        "`shpat_` or another of its kinds and 32 hexadecimal digits",
        &[begins(&["shpat_", "shpca_", "shppa_", "shpss_", "shpua_", "shptka_", "shprt_"]).run(ANY_HEX, 32)],
    ),
    vendor(
        "EASYPOST_KEY",
        "EasyPost API key",
        "`EZAK` or `EZTK` and 54 letters and digits",
        &[begins(&["EZAK", "EZTK"]).run(ALNUM, 54).digits(1)],
    ),
    vendor(
        "SHIPPO_TOKEN",
        "Shippo token",
        "`shippo_live_` or `shippo_test_` and 40 hexadecimal digits",
        &[begins(&["shippo_live_", "shippo_test_"]).run(HEX, 40)],
    ),
    vendor(
        "DUFFEL_TOKEN",
        "Duffel token",
        "`duffel_live_` or `duffel_test_` and 43 characters",
        &[begins(&["duffel_live_", "duffel_test_"]).run(URL_SAFE_PADDED, 40).digits(1)],
    ),
    vendor(
        "ADYEN_KEY",
        "Adyen API key",
        "`AQE` and 100 or more characters of base64, two parts",
        &[begins(&["AQEy", "AQEx", "AQEw", "AQEz"]).run(PADDED, 80).text("-").run(PADDED, 30)],
    ),
    vendor(
        "POLAR_TOKEN",
        "Polar token",
        "`polar_oat_`, `polar_pat_` or `polar_at_` and 40 letters, digits, `-`, `_`",
        &[begins(&["polar_oat_", "polar_pat_", "polar_at_", "polar_at_u_", "polar_at_o_", "polar_rt_", "polar_cs_"])
            .run(URL_SAFE, 30)
            .digits(1)],
    ),
    vendor(
        "MERCURY_TOKEN",
        "Mercury token",
        "`mercury_production_` or `mercury_sandbox_`, letters and digits, and their end",
        &[begins(&["mercury_production_", "mercury_sandbox_"]).run(WORD, 40).digits(1)],
    ),
    vendor(
        "PAGARME_KEY",
        "Pagar.me key",
        "`ak_live_` or `ak_test_` and 30 letters and digits",
        &[begins(&["ak_live_", "ak_test_"]).run(ALNUM, 24).digits(1)],
    ),
    vendor(
        "LOB_KEY",
        "Lob API key",
        "`live_` or `test_` and 35 hexadecimal digits; others copy the form",
        &[begins(&["live_", "test_"]).between(HEX, 32, 64).digits(4)],
    ),
    vendor(
        "CHECKOUT_KEY",
        "Checkout.com secret key",
        "`sk_` or `sk_sbox_` and a UUID or 27 characters",
        &[
            begins(&["sk_", "sk_test_"]).exactly(HEX_DASH, 36).digits(6),
            begins(&["sk_sbox_"]).run(SMALL_ALNUM, 20).digits(1),
        ],
    ),
    vendor(
        "RAMP_SECRET",
        "Ramp client secret",
        "`ramp_sec_` or `ramp_tok_` and letters and digits",
        &[begins(&["ramp_sec_", "ramp_tok_", "ramp_business_tok_"]).run(ALNUM, 30).digits(1)],
    ),
    vendor(
        "SALESFORCE_TOKEN",
        "Salesforce session",
        "`00D` and 12 letters and digits, `!` and 80 or more characters",
        &[begins(&["00D", "00g"]).exactly(ALNUM, 12).text("!").run(DOTTED, 80)],
    ),
];
