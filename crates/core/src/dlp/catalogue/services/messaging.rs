//! Chat and mail.

use crate::dlp::tokens::alphabet::{
    ALNUM, ANY_BASE64, ANY_HEX, BASE64, CAPITAL_ALNUM, DIGITS, HEX, HEX_DASH, SMALL_ALNUM, URL_SAFE, URL_SAFE_PADDED,
    of,
};
use crate::dlp::tokens::format::{Vendor, bare, begins, vendor};

pub(in crate::dlp::catalogue) const VENDORS: &[Vendor] = &[
    vendor(
        "SLACK_TOKEN",
        "Slack token",
        "`xoxb-`, `xoxp-` or another of its kinds, or `xapp-`, and 10 or more characters",
        &[
            begins(&["xoxa-", "xoxb-", "xoxc-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-"])
                .run(URL_SAFE.and(of(b"%")), 10)
                .digits(2),
            begins(&["xoxd-"]).run(ANY_BASE64.and(of(b"%")), 30).mixed(),
            begins(&["xoxe.xoxb-", "xoxe.xoxp-"]).run(URL_SAFE, 30).digits(2),
            begins(&["xapp-"]).run(URL_SAFE.and(of(b"/")), 20).digits(4),
        ],
    ),
    vendor(
        "SLACK_WEBHOOK",
        "Slack webhook",
        "an address at `hooks.slack.com`",
        &[begins(&["hooks.slack.com/services/", "hooks.slack.com/workflows/", "hooks.slack.com/triggers/"])
            .run(URL_SAFE.and(of(b"/")), 20)
            .digits(1)
            .address()],
    ),
    vendor(
        "DISCORD_TOKEN",
        "Discord bot token",
        "23 to 28 characters that begin with `M`, `N` or `O`, `.`, 6, `.` and 27 to 38",
        &[bare()
            .exactly(of(b"MNO"), 1)
            .exactly(CAPITAL_ALNUM.and(of(b"jz")), 1)
            .between(URL_SAFE, 21, 26)
            .text(".")
            .exactly(URL_SAFE, 6)
            .text(".")
            .between(URL_SAFE, 27, 38)
            .mixed()],
    ),
    vendor(
        "DISCORD_WEBHOOK",
        "Discord webhook",
        "an address at `discord.com/api/webhooks`",
        &[begins(&["discord.com/api/webhooks/", "discordapp.com/api/webhooks/"])
            .between(DIGITS, 15, 21)
            .text("/")
            .run(URL_SAFE, 50)
            .address()],
    ),
    vendor(
        "TEAMS_WEBHOOK",
        "Microsoft Teams webhook",
        "an address at `webhook.office.com` or `outlook.office.com/webhook`",
        &[begins(&["webhook.office.com/webhook", "outlook.office.com/webhook", "outlook.office365.com/webhook"])
            .run(URL_SAFE.and(of(b"/@")), 60)
            .digits(1)
            .address()],
    ),
    vendor(
        "MATTERMOST_WEBHOOK",
        "Mattermost webhook",
        "an address that ends in `/hooks/` and 26 small letters and digits",
        &[begins(&["hooks/"]).exactly(SMALL_ALNUM, 26).digits(2).address()],
    ),
    vendor(
        "TELEGRAM_TOKEN",
        "Telegram bot token",
        "8 to 10 digits, `:A` and 34 characters",
        &[bare().between(DIGITS, 8, 10).text(":A").run(URL_SAFE, 33)],
    ),
    vendor(
        "ZAPIER_WEBHOOK",
        "Zapier webhook",
        "an address at `hooks.zapier.com`",
        &[begins(&["hooks.zapier.com/hooks/catch/"]).run(URL_SAFE.and(of(b"/")), 10).digits(4).address()],
    ),
    vendor(
        "FIREBASE_KEY",
        "Firebase Cloud Messaging server key",
        "`AAAA`, 7 characters, `:` and 140 more",
        &[begins(&["AAAA"]).exactly(URL_SAFE, 7).text(":").run(URL_SAFE, 134).mixed()],
    ),
    vendor(
        "TWITTER_TOKEN",
        "Twitter bearer token",
        "22 times `A`, and letters and digits with an escaped sign of base64 between",
        &[begins(&["AAAAAAAAAAAAAAAAAAAAA"]).run(ALNUM, 4).text("%").run(ALNUM.and(of(b"%")), 30).mixed()],
    ),
    vendor(
        "NYLAS_KEY",
        "Nylas API key",
        "`nyk_v0_` and 64 letters and digits",
        &[begins(&["nyk_v0_", "nyk_"]).run(ALNUM, 40).digits(1)],
    ),
    vendor(
        "TWILIO_KEY",
        "Twilio API key",
        "`SK` and 32 hexadecimal digits",
        &[begins(&["SK"]).exactly(ANY_HEX, 32).digits(4)],
    ),
    vendor(
        "SENDGRID_KEY",
        "SendGrid API key",
        "`SG.`, 22 characters, `.` and 43",
        &[
            begins(&["SG."]).between(URL_SAFE, 16, 32).text(".").run(URL_SAFE, 16),
            begins(&["SG."]).exactly(URL_SAFE_PADDED.and(of(b".")), 66).digits(6),
        ],
    ),
    vendor(
        "SENDINBLUE_KEY",
        "Brevo API key",
        "`xkeysib-`, 64 hexadecimal digits, `-` and 16 letters and digits",
        &[begins(&["xkeysib-", "xsmtpsib-"]).run(HEX, 64).text("-").run(ALNUM, 16)],
    ),
    vendor(
        "MAILCHIMP_KEY",
        "Mailchimp API key",
        "32 hexadecimal digits, `-us` and a number",
        &[bare().exactly(HEX, 32).text("-us").between(DIGITS, 1, 2)],
    ),
    vendor(
        "MAILGUN_KEY",
        "Mailgun API key",
        "`key-` and 32 letters and digits",
        &[begins(&["key-", "pubkey-"]).exactly(SMALL_ALNUM, 32).digits(4)],
    ),
    vendor(
        "MAILERSEND_TOKEN",
        "MailerSend token",
        "`mlsn.` and 40 or more letters and digits",
        &[begins(&["mlsn."]).run(ALNUM, 40).digits(1)],
    ),
    vendor(
        "RESEND_KEY",
        "Resend API key",
        "`re_`, 8 letters and digits, `_` and 24 more",
        &[begins(&["re_"]).between(ALNUM, 6, 10).text("_").run(ALNUM, 20).mixed()],
    ),
    vendor(
        "BRANCH_KEY",
        "Branch.io key",
        "`key_live_` or `key_test_` and 32 letters and digits",
        &[begins(&["key_live_", "key_test_"]).run(ALNUM, 32).digits(1)],
    ),
    vendor(
        "PUBNUB_KEY",
        "PubNub key",
        "`pub-c-`, `sub-c-` or `sec-c-` and a UUID or base64",
        &[begins(&["pub-c-", "sub-c-"]).exactly(HEX_DASH, 36), begins(&["sec-c-"]).run(BASE64, 30).mixed()],
    ),
    vendor(
        "TWITCH_STREAM_KEY",
        "Twitch stream key",
        "`live_`, a number, `_` and 30 letters and digits",
        &[begins(&["live_"]).between(DIGITS, 6, 12).text("_").run(ALNUM, 28)],
    ),
    vendor(
        "INSTAGRAM_TOKEN",
        "Instagram token",
        "`IGQV` or `IGAA` and 100 or more letters and digits",
        &[begins(&["IGQV", "IGAA", "IGQW"]).run(URL_SAFE, 80).mixed()],
    ),
    vendor(
        "FACEBOOK_TOKEN",
        "Facebook token",
        "`EAA` and 80 or more letters and digits; an app's number, `|` and 27 characters",
        &[
            begins(&["EAACEdEose0cBA"]).run(ALNUM, 10),
            begins(&["EAA"]).run(ALNUM, 80).mixed(),
            bare().between(DIGITS, 13, 17).text("|").run(URL_SAFE, 27).mixed(),
        ],
    ),
    vendor(
        "LINKEDIN_TOKEN",
        "LinkedIn token",
        "`AQ` and 200 or more letters, digits, `-`, `_`",
        &[begins(&["AQX", "AQV", "AQU", "AQT"]).run(URL_SAFE, 200).mixed()],
    ),
    vendor(
        "VOICEFLOW_KEY",
        "Voiceflow API key",
        "`VF.DM.` or `VF.WS.`, 24 hexadecimal digits, `.` and 16 letters and digits",
        &[begins(&["VF.DM.", "VF.WS.", "VF."]).exactly(ALNUM, 24).text(".").run(ALNUM, 16)],
    ),
    vendor(
        "DROPBOX_TOKEN",
        "Dropbox token",
        "`sl.` and 80 or more letters, digits, `-`, `_`",
        &[begins(&["sl.", "sl.u."]).run(URL_SAFE, 60).mixed()],
    ),
];
