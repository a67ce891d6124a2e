//! Vendors whose keys have no form of their own: only the name beside them tells.

use super::row;
use crate::dlp::kind::{Family, Kind};

pub(super) const KINDS: &[Kind] = &[
    row(
        "AWS_SECRET_KEY",
        Family::ApiKey,
        "Secret of an AWS access key",
        "40 characters of base64 behind an access key, or behind `aws_secret…`",
    ),
    row("AWS_SESSION_TOKEN", Family::ApiKey, "AWS session token", "100 or more characters behind `aws_session_token`"),
    row(
        "AZURE_STORAGE_KEY",
        Family::ApiKey,
        "Azure storage or service bus key",
        "base64 behind `AccountKey=`, `SharedAccessKey=`",
    ),
    row("DATADOG_KEY", Family::ApiKey, "Datadog key", "32 or 40 characters behind a name with `datadog` or `dd_`"),
    row("OKTA_TOKEN", Family::ApiKey, "Okta token", "`00` and 40 characters behind a name with `okta`, or `SSWS`"),
    row("SNOWFLAKE_SECRET", Family::ApiKey, "Snowflake secret", "40 or more characters behind a name with `snowflake`"),
    // Rows that stand in another part as well are to be kept there.
];
