//! Source control, packages, builds.

use super::row;
use crate::dlp::kind::{Family, Kind};
use crate::dlp::tokens::alphabet::{
    ALNUM, ANY_BASE64, ANY_HEX, CAPITAL_ALNUM, DOTTED, HEX, HEX_DASH, PADDED, SMALL_ALNUM, URL_SAFE, URL_SAFE_PADDED,
    WORD, of,
};
use crate::dlp::tokens::checksum::{is_github, is_gitlab};
use crate::dlp::tokens::format::{Vendor, bare, begins, kinds, vendor};

pub(super) const KINDS: &[Kind] = &kinds::<{ VENDORS.len() }>(VENDORS);

pub(super) const VENDORS: &[Vendor] = &[
    vendor(
        "GITHUB_TOKEN",
        "GitHub token",
        "`ghp_`, `gho_`, `ghu_`, `ghs_` or `ghr_` and 36 or more letters and digits, `ghs_` also with a JWT; `github_pat_`",
        &[
            begins(&["ghp_", "gho_", "ghu_", "ghr_"]).run(ALNUM, 36).digits(1).checksum(is_github),
            begins(&["ghs_"]).run(DOTTED, 36).digits(1).checksum(is_github),
            begins(&["github_pat_"]).run(WORD, 36).digits(1),
        ],
    ),
    vendor(
        "GITLAB_TOKEN",
        "GitLab token",
        "`glpat-` or one of the other prefixes and 20 or more characters; `GR1348941` and 20; a session cookie",
        &[
            begins(&[
                "glpat-", "glptt-", "gldt-", "glrt-", "glrtr-", "glcbt-", "gloas-", "glft-", "glimt-", "glagent-",
                "glsoat-", "glffct-", "glwt-",
            ])
            .run(DOTTED, 20)
            .checksum(is_gitlab),
            begins(&["GR1348941"]).run(URL_SAFE, 20),
            begins(&["gitlab_session="]).exactly(SMALL_ALNUM, 32).digits(1),
        ],
    ),
    vendor(
        "ATLASSIAN_TOKEN",
        "Atlassian or Bitbucket token",
        "`ATATT3`, `ATCTT3`, `ATSTT3`, `ATBB` or `BBDC-` and 20 or more characters",
        &[
            begins(&["ATATT3", "ATCTT3", "ATSTT3"]).run(URL_SAFE_PADDED, 20).digits(1),
            begins(&["ATBB"]).run(ALNUM, 24).mixed(),
            begins(&["BBDC-"]).run(PADDED, 40).mixed(),
        ],
    ),
    vendor(
        "NPM_TOKEN",
        "npm access token",
        "`npm_` and 36 letters and digits",
        &[begins(&["npm_"]).run(ALNUM, 36).digits(1).checksum(is_github)],
    ),
    vendor("PYPI_TOKEN", "PyPI token", "`pypi-Ag` and a macaroon in base64", &[begins(&["pypi-Ag"]).run(URL_SAFE, 50)]),
    vendor(
        "RUBYGEMS_KEY",
        "RubyGems API key",
        "`rubygems_` and 48 hexadecimal digits",
        &[begins(&["rubygems_"]).run(HEX, 48)],
    ),
    vendor(
        "NUGET_KEY",
        "NuGet API key",
        "`oy2` and 43 small letters and digits",
        &[begins(&["oy2"]).exactly(SMALL_ALNUM, 43).digits(2)],
    ),
    vendor(
        "CRATES_IO_TOKEN",
        "crates.io token",
        "`cio` and 32 letters and digits",
        &[begins(&["cio"]).exactly(ALNUM, 32).mixed()],
    ),
    vendor(
        "DOCKERHUB_TOKEN",
        "Docker Hub token",
        "`dckr_pat_` or `dckr_oat_` and 27 to 32 letters, digits, `-`, `_`",
        &[begins(&["dckr_pat_", "dckr_oat_"]).run(URL_SAFE, 27)],
    ),
    vendor(
        "DOCKER_SWARM_TOKEN",
        "Docker Swarm token or key",
        "`SWMTKN-1-`, 50 characters, `-` and 25; `SWMKEY-1-` and 43",
        &[begins(&["SWMTKN-1-"]).run(URL_SAFE, 60), begins(&["SWMKEY-1-"]).run(PADDED, 40)],
    ),
    vendor(
        "CLOJARS_TOKEN",
        "Clojars token",
        "`CLOJARS_` and 60 small letters and digits",
        &[begins(&["CLOJARS_"]).run(ALNUM, 60)],
    ),
    vendor(
        "ARTIFACTORY_TOKEN",
        "Artifactory key or token",
        "`AKCp` and 68 or more letters and digits; `cmVmd` and 59",
        &[begins(&["AKCp"]).run(ALNUM, 60).digits(1), begins(&["cmVmd"]).exactly(ALNUM, 59).digits(1)],
    ),
    vendor(
        "CIRCLECI_TOKEN",
        "CircleCI token",
        "`CCIPAT_`, 22 characters, `_` and 40 hexadecimal digits",
        &[begins(&["CCIPAT_", "CCIPRJ_"]).run(WORD, 40).digits(1)],
    ),
    vendor(
        "BUILDKITE_TOKEN",
        "Buildkite token",
        "`bkua_`, `bkat_` and the like and 40 hexadecimal digits",
        &[begins(&["bkua_", "bkat_", "bkaj_", "bkpt_", "bkpat_", "bkct_", "bkps_", "bkar_"]).run(ALNUM, 32).digits(1)],
    ),
    vendor(
        "TERRAFORM_TOKEN",
        "HCP Terraform token",
        "14 letters and digits, `.atlasv1.` and 60 or more",
        &[bare().exactly(ALNUM, 14).text(".atlasv1.").run(URL_SAFE_PADDED, 60).marked(".atlasv1.", ALNUM, 14)],
    ),
    vendor(
        "PULUMI_TOKEN",
        "Pulumi access token",
        "`pul-` and 40 hexadecimal digits",
        &[begins(&["pul-"]).run(HEX, 40)],
    ),
    vendor(
        "VAULT_TOKEN",
        "HashiCorp Vault token",
        "`hvs.`, `hvb.` or `hvr.` and 24 or more letters, digits, `-`, `_`; in older ones `s.` and 24",
        &[
            begins(&["hvs.", "hvb.", "hvr."]).run(URL_SAFE, 24).digits(1),
            // Programs made small have members like this; seldom with so many digits.
            begins(&["s.", "b.", "r."]).between(ALNUM, 24, 26).digits(3).mixed(),
        ],
    ),
    vendor(
        "DOPPLER_TOKEN",
        "Doppler token",
        "`dp.pt.` or another of its kinds, and 40 to 44 letters and digits",
        &[
            begins(&["dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."]).run(ALNUM, 40),
            begins(&["dp.st."]).between(SMALL_ALNUM.and(of(b"-_")), 2, 35).text(".").run(ALNUM, 40),
        ],
    ),
    vendor(
        "ONEPASSWORD_TOKEN",
        "1Password token or secret key",
        "`ops_eyJ` and 250 or more characters of base64; `A3-` and groups of capitals and digits",
        &[
            begins(&["ops_eyJ"]).run(ANY_BASE64, 200),
            begins(&["A3-"]).exactly(CAPITAL_ALNUM, 6).text("-").run(CAPITAL_ALNUM.and(of(b"-")), 29).digits(1),
        ],
    ),
    vendor(
        "SONAR_TOKEN",
        "SonarQube token",
        "`sqp_`, `squ_` or `sqa_` and 40 hexadecimal digits",
        &[begins(&["sqp_", "squ_", "sqa_"]).run(ANY_HEX.and(of(b"GHgh")), 40)],
    ),
    vendor(
        "SENTRY_TOKEN",
        "Sentry token",
        "`sntrys_` and base64, `sntryu_` and 64 hexadecimal digits",
        &[begins(&["sntrys_"]).run(ANY_BASE64, 60), begins(&["sntryu_"]).run(HEX, 64)],
    ),
    vendor(
        "SOURCEGRAPH_TOKEN",
        "Sourcegraph token",
        "`sgp_` and 40 hexadecimal digits, an instance between",
        &[
            begins(&["sgp_", "sgp_local_"]).run(ANY_HEX, 40),
            begins(&["sgp_", "sgd_"]).exactly(ANY_HEX, 16).text("_").run(WORD, 40),
            begins(&["slk_", "sgd_"]).run(HEX, 64),
        ],
    ),
    vendor(
        "LAUNCHDARKLY_KEY",
        "LaunchDarkly key",
        "`sdk-`, `api-` or `mob-` and a UUID",
        &[
            begins(&["sdk-", "api-", "mob-", "rel-"]).exactly(HEX_DASH, 36).digits(4),
            begins(&["launchdarkly-private-"]).exactly(HEX_DASH, 36),
        ],
    ),
    vendor(
        "HARNESS_TOKEN",
        "Harness token",
        "`pat.` or `sat.`, 22 characters, `.`, 24 hexadecimal digits, `.` and 20 letters and digits",
        &[begins(&["pat.", "sat."]).exactly(URL_SAFE, 22).text(".").exactly(ANY_HEX, 24).text(".").run(ALNUM, 20)],
    ),
    vendor(
        "PREFECT_TOKEN",
        "Prefect API key",
        "`pnu_` or `pnb_` and 36 letters and digits",
        &[begins(&["pnu_", "pnb_"]).run(ALNUM, 36)],
    ),
    Vendor {
        kind: row("AGE_KEY", Family::Credential, "age secret key", "`AGE-SECRET-KEY-1` and 58 characters of Bech32"),
        formats: &[begins(&["AGE-SECRET-KEY-1"]).run(CAPITAL_ALNUM, 50)],
    },
    vendor(
        "POSTMAN_KEY",
        "Postman API key",
        "`PMAK-`, 24 hexadecimal digits, `-` and 34; `PMAT-` and 26 capitals and digits",
        &[begins(&["PMAK-"]).run(HEX_DASH, 50), begins(&["PMAT-"]).run(CAPITAL_ALNUM, 26).digits(1)],
    ),
    vendor(
        "INFRACOST_KEY",
        "Infracost API key",
        "`ico-` and 32 letters and digits",
        &[begins(&["ico-"]).exactly(ALNUM, 32)],
    ),
    vendor(
        "SNYK_TOKEN",
        "Snyk token",
        "`snyk_uat.`, 8 hexadecimal digits, `.` and base64",
        &[begins(&["snyk_uat.", "snyk_sat."]).exactly(HEX, 8).text(".").run(DOTTED, 20)],
    ),
    vendor(
        "OCTOPUS_DEPLOY_KEY",
        "Octopus Deploy API key",
        "`API-` and 26 capitals and digits",
        &[begins(&["API-"]).between(CAPITAL_ALNUM, 25, 32).digits(1)],
    ),
    vendor(
        "DEPENDENCY_TRACK_KEY",
        "Dependency-Track API key",
        "`odt_` and 32 or more letters and digits",
        &[begins(&["odt_"]).run(WORD, 32).digits(1)],
    ),
    vendor(
        "STACKHAWK_KEY",
        "StackHawk API key",
        "`hawk.`, 20 characters, `.` and 20 more",
        &[begins(&["hawk."]).exactly(URL_SAFE, 20).text(".").exactly(URL_SAFE, 20)],
    ),
    vendor(
        "MERGIFY_KEY",
        "Mergify application key",
        "`mergify_application_key_` and 64 letters, digits, `-`, `_`",
        &[begins(&["mergify_application_key_"]).run(URL_SAFE, 40)],
    ),
    vendor(
        "AIKIDO_TOKEN",
        "Aikido token or secret",
        "`AIK_CI_` or `AIK_SECRET_` and 24 or more letters and digits",
        &[begins(&["AIK_CI_", "AIK_SECRET_"]).run(ALNUM, 20).digits(1)],
    ),
    vendor(
        "INTRA42_SECRET",
        "42 Intra client secret",
        "`s-s4t2ud-` or `s-s4t2af-` and 64 hexadecimal digits",
        &[begins(&["s-s4t2ud-", "s-s4t2af-"]).run(HEX, 64)],
    ),
    vendor(
        "TRIGGER_DEV_KEY",
        "Trigger.dev key",
        "`tr_dev_`, `tr_prod_`, `tr_stg_` or `tr_pat_` and 20 or more letters and digits",
        &[begins(&["tr_dev_", "tr_prod_", "tr_stg_", "tr_pat_"]).run(ALNUM, 20).digits(1)],
    ),
    vendor(
        "PACKAGIST_TOKEN",
        "Packagist token",
        "`packagist_ort_`, `packagist_out_` or `packagist_uut_` and 68 hexadecimal digits",
        &[begins(&["packagist_ort_", "packagist_out_", "packagist_uut_"]).run(HEX, 60)],
    ),
    vendor(
        "SOCKET_KEY",
        "Socket API key",
        "`sktsec_` and 40 or more letters, digits, `-`, `_`",
        &[begins(&["sktsec_"]).run(URL_SAFE, 30).digits(1)],
    ),
    vendor(
        "ENDOR_LABS_KEY",
        "Endor Labs key",
        "`endr+` and 16 letters, digits, `-`",
        &[begins(&["endr+"]).run(URL_SAFE, 16).digits(1)],
    ),
    vendor(
        "CODEMAGIC_TOKEN",
        "Codemagic token",
        "`codemagic_` and 32 or more letters and digits",
        &[begins(&["codemagic_"]).run(ALNUM, 32).mixed()],
    ),
];
