//! What looks like a secret and is none.

use super::found;

#[test]
fn programs_and_prose_stay() {
    for text in [
        "the password is wrong",
        "if password1 and password2 and password1 != password2:",
        "(\"username\", \"password1\", \"password2\"),",
        "PASS: localhost:8000 is taken, PASS: mincnt=1 shows empty bins",
        "the password is: required",
        "password: String,",
        "password: str",
        "password: Optional[str] = None",
        "password = getpass()",
        "password = getpass.getpass(\"Password: \")",
        "password = os.environ[\"DB_PASSWORD\"]",
        "apiKey: process.env.API_KEY",
        "token = self.token",
        "token = request.headers.get(\"x-token\")",
        "password = user_password",
        "pub const ERROR_WRONG_PASSWORD: WIN32_ERROR = 1323u32;",
        "pub const IFLA_LOCALBYPASS: _bindgen_ty_22 = 1;",
        "\"LABEL_PASSWORD\": \"Parole\"",
        "\"password\": \"Enter your new password here\"",
        "<input type=\"password\" name=\"newPassword\" class=\"form-control\">",
        "case \"pass\", \"password\":",
        "{\"x\": \"password\", \"hostname\": \"example\"}",
        "password.encode('utf-8')",
        "t.pass(\"tests/ui/*.rs\")",
        "--password-file /run/secret",
        "use --username and --password options",
        "  -W, --password     force password prompt",
        "PWD=/home/me/project",
        "max_tokens: 4096",
        "tokenizer = \"cl100k_base4668d0d3\"",
        "token_type: bearer",
        "\"author\": \"b373398b00849944a45ab3eb93c31de5\"",
        "keyboard = \"b373398b00849944a45ab3eb93c31de5\"",
        "monkey = b373398b00849944a45ab3eb93c31de5",
        "next_page_token: \"b373398b00849944a45ab3eb93c31de5\"",
        "credentials: 'omit'",
        "credentials: 'same-origin'",
        "minipass \"^7.1.2\"",
        "key = 1979-05-27T07:32:00Z",
        "key = ctrl+shift+down",
        "let compass = \"north-west\";",
        "FAIL_TO_PASS: \"tests/a.py\"",
        "all columns identified by \"colUsed\" are",
        "sa_token_style: uuid",
        "secret_name = 'my-app-secrets'",
        "token: \"token\"",
    ] {
        assert_eq!(found(text), [], "{text}");
    }
}

#[test]
fn hashes_and_what_is_public_stay() {
    const HEX: &str = "90f5b5e6317542f5aa4beb51d0b9abca2631d3ee";
    for name in [
        "sha1",
        "key_sha256",
        "token_hash",
        "commit",
        "integrity",
        "checksum",
        "public_key",
        "api_key_fingerprint",
        "cache_key",
        "etag",
        "csrf_token",
    ] {
        let text = format!("{name}: {HEX}");
        assert_eq!(found(&text), [], "{text}");
    }
    assert_eq!(found("password: \"$2a$11$ViHQbhNVLFCgoQYzUoKSjnRq9X05CigDOwK\""), []);
    assert_eq!(found("key: 86c03267-084d-ebd3-5cf0-a7303fb7bf07"), []);
    assert_eq!(found("request 86c03267-084d-ebd3-5cf0-a7303fb7bf07 done"), []);
}

#[test]
fn placeholders_stay() {
    for value in [
        "${DB_PASSWORD}",
        "$DB_PASSWORD",
        "<password>",
        "{{ password }}",
        "xxxxxxxxxxxx",
        "********",
        "your-password-here",
        "YOUR_API_KEY",
        "changeme",
        "[REDACTED:PASSWORD]",
        "[PASSWORD_1]",
        "AKIAIOSFODNN7EXAMPLE",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "%s",
        "%(password)s",
        "null",
        "None",
    ] {
        for form in [
            "password: \"@\"",
            "API_KEY=@",
            "aws_secret_access_key = '@'",
            "Authorization: Bearer @",
            "postgres://me:@\u{1}db/x",
            "token: @",
        ] {
            let text = form.replacen('@', value, 1).replace('\u{1}', "@");
            assert_eq!(found(&text), [], "{text}");
        }
    }
}

#[test]
fn addresses_without_a_password_stay() {
    for text in [
        "https://example.com:8080/path",
        "http://host:80#x@y",
        "https://user:pass@host/",
        "postgres://postgres:postgres@localhost/x",
        "mongodb://{user}:{password}@host",
        "https://me@example.com/x",
        "see https://example.com/a@b:c and mail me@example.com",
        "git+ssh://git@github.com/x/y",
    ] {
        assert_eq!(found(text), [], "{text}");
    }
}

#[test]
fn what_was_hidden_is_not_found_again() {
    for text in [
        "password: \"hunter2\"",
        "DB_PASSWORD=hunter2\n",
        "Authorization: Bearer b373398b00849944a45ab3eb93c31de5",
        "postgres://app:s3cr3tly@db:5432/app",
        "acme SECRET b373398b00849944a45ab3eb93c31de5",
        "curl -u me:hunter2 https://x",
    ] {
        let hits = found(text);
        assert_eq!(hits.len(), 1, "{text}");
        for mark in [format!("[REDACTED:{}]", hits[0].0), format!("[{}_12]", hits[0].0)] {
            let hidden = text.replace(hits[0].1, &mark);
            assert_eq!(found(&hidden), [], "{hidden}");
        }
    }
}
