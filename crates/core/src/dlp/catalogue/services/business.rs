//! Work, design, content, sales.

use crate::dlp::tokens::alphabet::{
    ALNUM, ANY_HEX, BASE64, CAPITAL_ALNUM, DIGITS, DOTTED, HEX, HEX_DASH, SMALL_ALNUM, URL_SAFE, URL_SAFE_PADDED, WORD,
};
use crate::dlp::tokens::format::{Vendor, bare, begins, vendor};

pub(in crate::dlp::catalogue) const VENDORS: &[Vendor] = &[
    vendor(
        "NOTION_TOKEN",
        "Notion token",
        "`ntn_` and 46 letters and digits; `secret_` and 43",
        &[begins(&["ntn_"]).run(ALNUM, 40).digits(4), begins(&["secret_"]).exactly(ALNUM, 43).mixed()],
    ),
    vendor(
        "LINEAR_KEY",
        "Linear key",
        "`lin_api_` or `lin_oauth_` and 40 letters and digits",
        &[begins(&["lin_api_", "lin_oauth_", "lin_wh_"]).run(ALNUM, 30).digits(1)],
    ),
    vendor(
        "ASANA_TOKEN",
        "Asana token",
        "a digit, `/`, 16 digits, `:` and 32 hexadecimal digits",
        &[
            begins(&["0/", "1/", "2/"]).between(DIGITS, 15, 17).text(":").exactly(ANY_HEX, 32),
            begins(&["0/", "1/", "2/"])
                .between(DIGITS, 15, 17)
                .text("/")
                .between(DIGITS, 15, 17)
                .text(":")
                .exactly(ANY_HEX, 32),
        ],
    ),
    vendor(
        "AIRTABLE_TOKEN",
        "Airtable token",
        "`pat`, 14 letters and digits, `.` and 64 hexadecimal digits",
        &[begins(&["pat"]).exactly(ALNUM, 14).text(".").run(HEX, 64)],
    ),
    vendor(
        "FIGMA_TOKEN",
        "Figma token",
        "`figd_` or another of its kinds and 38 or more letters, digits, `-`, `_`",
        &[begins(&[
            "figd_", "figo_", "figr_", "figh_", "figu_", "figoh_", "figor_", "figur_", "figuh_", "figdr_", "figdh_",
        ])
        .run(URL_SAFE, 38)
        .digits(1)],
    ),
    vendor(
        "HUBSPOT_TOKEN",
        "HubSpot token",
        "`pat-na1-` or `pat-eu1-` and a UUID",
        &[begins(&["pat-na1-", "pat-na2-", "pat-na3-", "pat-eu1-", "pat-ap1-"]).exactly(HEX_DASH, 36)],
    ),
    vendor(
        "TYPEFORM_TOKEN",
        "Typeform token",
        "`tfp_` and 40 or more characters",
        &[begins(&["tfp_"]).run(DOTTED.and(URL_SAFE_PADDED), 40).digits(1)],
    ),
    vendor(
        "CONTENTFUL_TOKEN",
        "Contentful token",
        "`CFPAT-` and 43 letters, digits, `-`, `_`",
        &[begins(&["CFPAT-"]).run(URL_SAFE, 40).digits(1)],
    ),
    vendor(
        "MAPBOX_TOKEN",
        "Mapbox secret token",
        "`sk.` or `tk.`, base64 that begins with `eyJ`, `.` and 22 characters",
        &[begins(&["sk.eyJ", "tk.eyJ"]).run(URL_SAFE, 40).text(".").run(URL_SAFE, 20)],
    ),
    vendor(
        "README_TOKEN",
        "ReadMe token",
        "`rdme_` and 70 small letters and digits",
        &[begins(&["rdme_"]).run(SMALL_ALNUM, 60)],
    ),
    vendor(
        "ADOBE_SECRET",
        "Adobe client secret",
        "`p8e-` or `p8` and 32 letters and digits",
        &[begins(&["p8e-", "p8-"]).run(URL_SAFE, 32).digits(1)],
    ),
    vendor(
        "SETTLEMINT_TOKEN",
        "SettleMint token",
        "`sm_aat_`, `sm_pat_` or `sm_sat_` and 16 letters and digits",
        &[begins(&["sm_aat_", "sm_pat_", "sm_sat_"]).run(ALNUM, 16).digits(1)],
    ),
    vendor(
        "CANVA_SECRET",
        "Canva client secret",
        "`cnvca` and 51 letters, digits, `-`, `_`",
        &[begins(&["cnvca"]).exactly(URL_SAFE, 51).mixed()],
    ),
    vendor(
        "ZUPLO_KEY",
        "Zuplo API key",
        "`zpka_`, 32 hexadecimal digits, `_` and 8",
        &[begins(&["zpka_", "zpkaapp_"]).exactly(SMALL_ALNUM, 32).text("_").run(HEX, 8)],
    ),
    vendor(
        "PERSONA_KEY",
        "Persona API key",
        "`persona_production_` or `persona_sandbox_` and 32 letters and digits",
        &[begins(&["persona_production_", "persona_sandbox_"]).run(WORD, 28).digits(1)],
    ),
    vendor(
        "WORKATO_TOKEN",
        "Workato token",
        "`wrka-`, `wrkaeu-` or the like, and a JWT",
        &[begins(&["wrka-", "wrkaeu-", "wrkajp-", "wrkasg-", "wrkaau-", "wrkail-"]).run(DOTTED, 60)],
    ),
    vendor(
        "CLICKUP_TOKEN",
        "ClickUp token",
        "`pk_`, a number, `_` and 32 capitals and digits",
        &[begins(&["pk_"]).between(DIGITS, 5, 10).text("_").run(CAPITAL_ALNUM, 30)],
    ),
    vendor(
        "KLAVIYO_KEY",
        "Klaviyo private key",
        "`pk_` and 34 letters and digits",
        &[begins(&["pk_"]).exactly(ALNUM, 34).mixed()],
    ),
    vendor(
        "ZOHO_TOKEN",
        "Zoho token",
        "`1000.`, 32 hexadecimal digits, `.` and 32",
        &[begins(&["1000."]).exactly(HEX, 32).text(".").exactly(HEX, 32)],
    ),
    vendor(
        "FLEETBASE_KEY",
        "Fleetbase key",
        "`flb_live_` or `flb_test_` and 20 letters and digits",
        &[begins(&["flb_live_", "flb_test_"]).run(ALNUM, 20).digits(1)],
    ),
    vendor(
        "TABLEAU_TOKEN",
        "Tableau token secret",
        "22 characters of base64, `==:` and 32 letters and digits",
        &[bare().exactly(BASE64, 22).text("==:").exactly(ALNUM, 32).mixed().marked("==:", BASE64, 22)],
    ),
    vendor(
        "EBAY_SECRET",
        "eBay client secret",
        "`PRD-` or `SBX-` and groups of hexadecimal digits",
        &[
            begins(&["PRD-", "SBX-"]).exactly(HEX, 12).text("-").run(HEX_DASH, 20),
            begins(&["PRD-", "SBX-"]).exactly(HEX_DASH, 32).digits(6),
        ],
    ),
    vendor(
        "CALCOM_KEY",
        "Cal.com key",
        "`cal_live_` and 32 hexadecimal digits",
        &[begins(&["cal_live_"]).run(HEX, 32)],
    ),
    vendor(
        "STYTCH_SECRET",
        "Stytch secret",
        "`secret-live-` or `secret-test-` and 36 characters",
        &[begins(&["secret-live-", "secret-test-"]).run(URL_SAFE_PADDED, 32).digits(1)],
    ),
    vendor(
        "INNGEST_KEY",
        "Inngest signing key",
        "`signkey-prod-` or the like and 32 or more hexadecimal digits",
        &[begins(&["signkey-prod-", "signkey-test-", "signkey-branch-"]).run(HEX, 32)],
    ),
    vendor(
        "TEAMWORK_TOKEN",
        "Teamwork token",
        "`tkn.v1_` and base64",
        &[begins(&["tkn.v1_"]).run(BASE64, 40).text("=")],
    ),
    vendor(
        "SUPERNOTES_KEY",
        "Supernotes key",
        "`supernotes_sk-` and 24 or more letters and digits",
        &[begins(&["supernotes_sk-"]).run(ALNUM, 20)],
    ),
];
