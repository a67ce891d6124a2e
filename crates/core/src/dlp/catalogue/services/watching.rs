//! Monitoring, analytics, feature flags.

use crate::dlp::tokens::alphabet::{ALNUM, ANY_BASE64, DOTTED, HEX, HEX_DASH, PADDED, SMALL_ALNUM, URL_SAFE, WORD};
use crate::dlp::tokens::format::{Vendor, bare, begins, vendor};

pub(in crate::dlp::catalogue) const VENDORS: &[Vendor] = &[
    vendor(
        "NEWRELIC_KEY",
        "New Relic key",
        "`NRAK-`, `NRII-` and the like and 18 or more characters; 30 to 36 characters and `NRAL`",
        &[
            begins(&["NRAK-", "NRAA-", "NRII-", "NRIQ-", "NRRA-", "NRSP-", "NRJS-", "NRBR-", "NRAL-"])
                .run(URL_SAFE, 18)
                .digits(2),
            bare().between(SMALL_ALNUM, 30, 36).text("NRAL").digits(4).marked("NRAL", SMALL_ALNUM, 36),
        ],
    ),
    vendor(
        "GRAFANA_TOKEN",
        "Grafana token",
        "`glsa_`, 32 characters, `_` and 8; `glc_` and base64; `eyJrIjoi` and base64",
        &[
            begins(&["glsa_"]).exactly(ALNUM, 32).text("_").run(ALNUM, 8),
            begins(&["glc_"]).run(ANY_BASE64, 32).digits(1),
            begins(&["glc_eyJ"]).run(ANY_BASE64, 32),
            begins(&["eyJrIjoi"]).run(PADDED, 60).digits(1),
        ],
    ),
    vendor(
        "DYNATRACE_TOKEN",
        "Dynatrace token",
        "`dt0c01.` or another of its kinds, 24 letters and digits, `.` and 64",
        &[begins(&[
            "dt0c01.", "dt0s01.", "dt0s02.", "dt0s03.", "dt0s04.", "dt0s06.", "dt0s08.", "dt0s09.", "dt0a01.",
            "dt0e01.", "dt0e02.", "dt0e03.", "dt0v01.", "dt0d01.",
        ])
        .between(ALNUM, 8, 32)
        .text(".")
        .run(ALNUM, 60)],
    ),
    vendor(
        "POSTHOG_KEY",
        "PostHog key",
        "`phc_`, `phx_` and the like and 40 or more letters and digits",
        &[begins(&["phc_", "phx_", "pha_", "phr_", "phs_"]).run(WORD, 38).mixed()],
    ),
    vendor(
        "AXIOM_TOKEN",
        "Axiom token",
        "`xaat-`, `xapt-` or `xait-` and a UUID",
        &[begins(&["xaat-", "xapt-", "xait-"]).exactly(HEX_DASH, 36)],
    ),
    vendor(
        "SEGMENT_TOKEN",
        "Segment token",
        "`sgp_` and 64 letters and digits",
        &[begins(&["sgp_"]).exactly(ALNUM, 64).digits(4)],
    ),
    vendor(
        "CONFIGCAT_KEY",
        "ConfigCat SDK key",
        "`configcat-sdk-1/`, 22 characters, `/` and 22",
        &[begins(&["configcat-sdk-1/", "configcat-proxy/"]).exactly(URL_SAFE, 22).text("/").exactly(URL_SAFE, 22)],
    ),
    vendor(
        "FULLSTORY_KEY",
        "FullStory API key",
        "`na1.` or `eu1.` and base64",
        &[begins(&["na1.", "eu1."]).run(PADDED, 80).mixed()],
    ),
    vendor(
        "IONIC_TOKEN",
        "Ionic token",
        "`ion_` and 42 letters and digits",
        &[begins(&["ion_"]).exactly(ALNUM, 42).mixed()],
    ),
    vendor(
        "SAMSARA_TOKEN",
        "Samsara API token",
        "`samsara_api_` and 30 letters and digits",
        &[begins(&["samsara_api_"]).run(ALNUM, 28)],
    ),
    vendor(
        "ADAFRUIT_KEY",
        "Adafruit IO key",
        "`aio_` and 28 letters and digits",
        &[begins(&["aio_"]).exactly(ALNUM, 28).mixed()],
    ),
    vendor(
        "UBIDOTS_KEY",
        "Ubidots key or token",
        "`BBFF-` and 30 letters and digits",
        &[begins(&["BBFF-"]).run(ALNUM, 30)],
    ),
    vendor(
        "WAKATIME_KEY",
        "WakaTime API key",
        "`waka_` and 36 or more small letters, digits, `-`",
        &[begins(&["waka_", "waka_tok_", "waka_sec_", "waka_ref_"]).run(URL_SAFE, 32).digits(2)],
    ),
    vendor("RIOT_KEY", "Riot Games API key", "`RGAPI-` and a UUID", &[begins(&["RGAPI-"]).run(URL_SAFE, 36).digits(1)]),
    vendor(
        "MAXMIND_KEY",
        "MaxMind license key",
        "6 letters and digits, `_`, 29 more and `_mmk`",
        &[bare().exactly(ALNUM, 6).text("_").exactly(ALNUM, 29).text("_mmk").marked("_mmk", WORD, 36)],
    ),
    vendor("ROOTLY_TOKEN", "Rootly token", "`rootly_` and 64 hexadecimal digits", &[begins(&["rootly_"]).run(HEX, 60)]),
    vendor(
        "SCRAPFLY_KEY",
        "Scrapfly key",
        "`scp-live-` or `scp-test-` and 32 hexadecimal digits",
        &[begins(&["scp-live-", "scp-test-"]).run(SMALL_ALNUM, 32)],
    ),
    vendor(
        "UNKEY_KEY",
        "Unkey root key",
        "`unkey_` and 22 or more letters and digits",
        &[begins(&["unkey_"]).run(ALNUM, 20).mixed()],
    ),
    vendor(
        "METABASE_KEY",
        "Metabase API key",
        "`mb_` and 44 characters of base64",
        &[begins(&["mb_"]).exactly(PADDED, 44).mixed()],
    ),
    vendor(
        "JUMPCLOUD_KEY",
        "JumpCloud API key",
        "`jca_` and 36 letters and digits",
        &[begins(&["jca_"]).exactly(ALNUM, 36).mixed()],
    ),
    vendor(
        "FRAMEIO_TOKEN",
        "Frame.io token",
        "`fio-u-` and 64 letters, digits, `-`, `_`",
        &[begins(&["fio-u-"]).run(URL_SAFE, 60)],
    ),
    vendor(
        "AUTHRESS_KEY",
        "Authress access key",
        "`sc_` or the like, an id, a number, `acc-`, an account and a key",
        &[begins(&["sc_", "ext_", "scauth_"])
            .between(ALNUM, 5, 30)
            .text(".")
            .between(ALNUM, 4, 6)
            .text(".")
            .run(DOTTED, 60)],
    ),
    vendor(
        "NIGHTFALL_KEY",
        "Nightfall API key",
        "`NF-` and 32 letters and digits",
        &[begins(&["NF-"]).exactly(ALNUM, 32).mixed()],
    ),
];
