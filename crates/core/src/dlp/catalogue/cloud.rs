//! Clouds and platforms.

use crate::dlp::kind::Kind;
use crate::dlp::tokens::alphabet::{
    ALNUM, ANY_BASE64, BASE64, CAPITAL_ALNUM, DIGITS, DOTTED, HEX, HEX_DASH, PADDED, SMALL_ALNUM, URL_SAFE,
    URL_SAFE_PADDED, WORD, of,
};
use crate::dlp::tokens::checksum::is_cloudflare;
use crate::dlp::tokens::format::{Vendor, bare, begins, kinds, vendor};

pub(super) const KINDS: &[Kind] = &kinds::<{ VENDORS.len() }>(VENDORS);

pub(super) const VENDORS: &[Vendor] = &[
    vendor(
        "AWS_ACCESS_KEY",
        "AWS access key id",
        "`AKIA`, `ASIA`, `ABIA`, `ACCA` or `A3T` and capitals and digits, 20 together; the secret behind a `:`",
        &[
            begins(&["AKIA", "ASIA", "ABIA", "ACCA"]).exactly(CAPITAL_ALNUM, 16).digits(1),
            begins(&["AKIA", "ASIA"]).exactly(CAPITAL_ALNUM, 16).text(":").exactly(BASE64, 40).mixed(),
            begins(&["A3T"]).exactly(CAPITAL_ALNUM, 17).digits(2),
        ],
    ),
    vendor(
        "AWS_MWS_KEY",
        "Amazon MWS token",
        "`amzn.mws.` and a UUID",
        &[begins(&["amzn.mws."]).exactly(HEX_DASH, 36)],
    ),
    vendor(
        "AWS_APPSYNC_KEY",
        "AWS AppSync key",
        "`da2-` and 26 small letters and digits",
        &[begins(&["da2-"]).exactly(SMALL_ALNUM, 26).digits(1)],
    ),
    vendor(
        "AZURE_AD_SECRET",
        "Microsoft Entra client secret",
        "three characters, a digit, `Q~` and 31 to 34 more",
        &[bare()
            .exactly(WORD.and(of(b"~.")), 3)
            .exactly(DIGITS, 1)
            .text("Q~")
            .between(DOTTED.and(of(b"~")), 31, 34)
            .marked("Q~", WORD.and(of(b"~.")), 4)],
    ),
    vendor(
        "AZURE_DEVOPS_PAT",
        "Azure DevOps token",
        "76 letters and digits, `AZDO` and 4 more",
        &[bare().exactly(ALNUM, 76).text("AZDO").exactly(ALNUM, 4).mixed().marked("AZDO", ALNUM, 76)],
    ),
    vendor(
        "DIGITALOCEAN_TOKEN",
        "DigitalOcean token",
        "`dop_v1_`, `doo_v1_` or `dor_v1_` and 64 hexadecimal digits",
        &[begins(&["dop_v1_", "doo_v1_", "dor_v1_"]).run(HEX, 64)],
    ),
    vendor(
        "HEROKU_KEY",
        "Heroku API key",
        "`HRKU-` and 60 letters, digits, `-`, `_`",
        &[begins(&["HRKU-"]).run(URL_SAFE, 36).digits(1)],
    ),
    vendor(
        "CLOUDFLARE_KEY",
        "Cloudflare token or CA key",
        "`v1.0-`, hexadecimal digits, `-` and more; `cfk_`, `cfut_` or `cfat_` and 48 letters and digits",
        &[
            begins(&["v1.0-"]).run(HEX, 24).text("-").run(HEX, 100),
            begins(&["cfk_", "cfut_", "cfat_"]).run(ALNUM, 48).digits(1).checksum(is_cloudflare),
        ],
    ),
    vendor(
        "VERCEL_TOKEN",
        "Vercel token",
        "`vcp_`, `vci_`, `vca_`, `vcr_` or `vck_` and 40 to 56 letters and digits",
        &[begins(&["vcp_", "vci_", "vca_", "vcr_", "vck_"]).run(URL_SAFE, 36).digits(1)],
    ),
    vendor(
        "NETLIFY_TOKEN",
        "Netlify token",
        "`nfp_` and 36 letters and digits",
        &[begins(&["nfp_", "nfo_", "nfc_", "nfu_"]).run(ALNUM, 36).digits(1)],
    ),
    vendor(
        "FLY_TOKEN",
        "Fly.io token",
        "`fo1_` and 43 letters, digits, `-`, `_`; `fm1_` or `fm2_` and base64",
        &[
            begins(&["fo1_"]).run(URL_SAFE, 43).digits(1),
            begins(&["fm1_", "fm2_", "fm1a_", "fm1r_", "fm2a_", "fm2r_"]).run(PADDED, 80).digits(1),
        ],
    ),
    vendor(
        "SUPABASE_KEY",
        "Supabase secret key or token",
        "`sbp_` and 40 letters and digits, `sb_secret_` and 31",
        &[
            begins(&["sbp_"]).run(ALNUM, 40).digits(1),
            begins(&["sb_secret_"]).run(URL_SAFE, 26).digits(1),
            begins(&["sbp_oauth_", "sbp_v0_"]).run(HEX, 40).digits(1),
        ],
    ),
    vendor(
        "PLANETSCALE_TOKEN",
        "PlanetScale token or password",
        "`pscale_tkn_`, `pscale_pw_` or `pscale_oauth_` and 32 or more characters",
        &[begins(&["pscale_tkn_", "pscale_pw_", "pscale_oauth_"]).run(DOTTED.and(of(b"=")), 32).digits(1)],
    ),
    vendor(
        "NEON_KEY",
        "Neon API key",
        "`napi_` and 64 small letters and digits",
        &[begins(&["napi_"]).run(ALNUM, 60).digits(2)],
    ),
    vendor(
        "RENDER_KEY",
        "Render API key",
        "`rnd_` and 28 letters and digits",
        &[begins(&["rnd_"]).run(ALNUM, 28).mixed()],
    ),
    vendor(
        "ALIBABA_KEY",
        "Alibaba Cloud access key id",
        "`LTAI` and 12 to 20 letters and digits",
        &[begins(&["LTAI"]).between(ALNUM, 12, 20).digits(1)],
    ),
    vendor(
        "TENCENT_KEY",
        "Tencent Cloud secret id",
        "`AKID` and 32 letters and digits",
        &[begins(&["AKID"]).exactly(ALNUM, 32).mixed()],
    ),
    vendor(
        "YANDEX_KEY",
        "Yandex Cloud key",
        "`t1.` and two parts, the last of 86 characters; `AQVN` and 35 to 38; `YC` and 38",
        &[
            begins(&["t1."]).run(URL_SAFE_PADDED, 1).text(".").run(URL_SAFE_PADDED, 80),
            begins(&["AQVN"]).between(URL_SAFE, 35, 38).mixed(),
            begins(&["YC"]).exactly(URL_SAFE, 38).mixed(),
        ],
    ),
    vendor(
        "OPENSHIFT_TOKEN",
        "OpenShift token",
        "`sha256~` and 43 letters, digits, `-`, `_`",
        &[begins(&["sha256~"]).run(URL_SAFE, 43).digits(1)],
    ),
    vendor(
        "DATABRICKS_TOKEN",
        "Databricks token",
        "`dapi` and 32 hexadecimal digits",
        &[
            begins(&["dapi"]).exactly(SMALL_ALNUM, 32).digits(4),
            begins(&["dapi"]).exactly(SMALL_ALNUM, 32).text("-").run(of(b"0123456789"), 1).digits(4),
        ],
    ),
    vendor(
        "CONFLUENT_SECRET",
        "Confluent Cloud secret",
        "`cflt` and 60 characters of base64",
        &[begins(&["cflt"]).exactly(BASE64, 60).mixed()],
    ),
    vendor(
        "MONGODB_ATLAS_SECRET",
        "MongoDB Atlas service account secret",
        "`mdb_sa_sk_` and 40 letters, digits, `-`, `_`",
        &[begins(&["mdb_sa_sk_"]).run(URL_SAFE, 36).digits(1)],
    ),
    vendor(
        "COCKROACH_KEY",
        "CockroachDB Cloud key",
        "`CCDB1_`, 22 letters and digits, `_` and 40",
        &[begins(&["CCDB1_"]).run(URL_SAFE, 40).digits(1)],
    ),
    vendor(
        "DATASTAX_TOKEN",
        "DataStax Astra token",
        "`AstraCS:`, 24 letters and `:` and 64 hexadecimal digits",
        &[begins(&["AstraCS:"]).run(ALNUM, 20).text(":").run(HEX, 40)],
    ),
    vendor(
        "CLICKHOUSE_KEY",
        "ClickHouse Cloud secret",
        "`4b1d` and 38 letters and digits",
        &[begins(&["4b1d"]).exactly(ALNUM, 38).mixed()],
    ),
    vendor(
        "EXOSCALE_KEY",
        "Exoscale API key",
        "`EXO` and 24 hexadecimal digits",
        &[begins(&["EXO"]).exactly(HEX, 24).digits(2)],
    ),
    vendor(
        "SCALINGO_TOKEN",
        "Scalingo token",
        "`tk-us-` and 48 letters, digits, `-`, `_`",
        &[begins(&["tk-us-", "tk-eu-"]).run(URL_SAFE, 48).digits(1)],
    ),
    vendor(
        "SCALEWAY_KEY",
        "Scaleway access key",
        "`SCW` and 17 capitals and digits",
        &[begins(&["SCW"]).exactly(CAPITAL_ALNUM, 17).digits(2)],
    ),
    vendor(
        "UPCLOUD_TOKEN",
        "UpCloud API token",
        "`ucat_` and 26 capitals and digits",
        &[begins(&["ucat_"]).run(CAPITAL_ALNUM, 26).digits(1)],
    ),
    vendor(
        "ELASTIC_KEY",
        "Elastic Cloud key",
        "`essu_` and 64 or more letters, digits, `-`, `_`",
        &[begins(&["essu_"]).run(ANY_BASE64, 40).mixed()],
    ),
    vendor(
        "TAILSCALE_KEY",
        "Tailscale key",
        "`tskey-`, a name, `-` and letters and digits",
        &[begins(&["tskey-"]).run(URL_SAFE, 16).digits(1)],
    ),
    vendor(
        "DEFINED_NETWORKING_KEY",
        "Defined Networking API key",
        "`dnkey-`, 26 characters, `-` and 52 more",
        &[begins(&["dnkey-"]).run(URL_SAFE_PADDED, 70).digits(1)],
    ),
    vendor(
        "DENO_TOKEN",
        "Deno Deploy token",
        "`ddp_` or `ddo_` and 36 letters and digits",
        &[begins(&["ddp_", "ddo_"]).run(ALNUM, 36).digits(1)],
    ),
    vendor(
        "XATA_KEY",
        "Xata API key",
        "`xau_` and 27 or more letters and digits",
        &[begins(&["xau_"]).run(ALNUM, 27).mixed()],
    ),
    vendor(
        "PIXIE_KEY",
        "Pixie API key",
        "`px-api-` and a UUID",
        &[begins(&["px-api-", "px-dep-"]).exactly(HEX_DASH, 36).digits(1)],
    ),
    vendor(
        "PORTAINER_TOKEN",
        "Portainer token",
        "`ptr_` and 44 characters of base64",
        &[begins(&["ptr_"]).exactly(BASE64, 43).text("=")],
    ),
];
