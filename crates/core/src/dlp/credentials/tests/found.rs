//! One value in every way people write it down.

use super::found;

/// Random, 24 characters.
const CHANCE: &str = "q7Zk2mVx9TbW4hLs8RcY1dNf";
/// Random hexadecimal digits.
const HEX: &str = "b373398b00849944a45ab3eb93c31de5";
const UUID: &str = "86c03267-084d-ebd3-5cf0-a7303fb7bf07";

fn expect(form: &str, value: &str, kind: &str) {
    let text = form.replace('@', value);
    assert_eq!(found(&text), [(kind, value)], "{text}");
}

#[test]
fn passwords_in_every_language() {
    for form in [
        "password = \"@\"",
        "password='@'",
        "let password: &str = \"@\";",
        "var dbPassword string = \"@\"",
        "const DB_PASSWORD = `@`;",
        "$password = '@';",
        "my $passwd = '@';",
        "db.password := \"@\"",
        "  :password => '@',",
        "\"password\": \"@\"",
        "{\\\"password\\\": \\\"@\\\"}",
        "['password'] = '@'",
        "password: @\n",
        "  - password: @\n",
        "DB_PASSWORD=@\n",
        "export DB_PASSWORD=\"@\"",
        "ENV MYSQL_PASSWORD @\n".trim_end_matches('\n'),
        "spring.datasource.password=@\n",
        "<password>@</password>",
        "<add key=\"password\" value=\"@\" />",
        "<entry key=\"password\">@</entry>",
        "setPassword(\"@\")",
        "define('DB_PASSWORD', '@')",
        "password = Some(\"@\")",
        "if password == \"@\" {",
        "mysql --password @ -h db",
        "mysql --password=@ -h db",
        "openssl rsa -passin pass:@ -in key.pem",
        "sshpass -p @ ssh host",
        "my password is @",
        "- name: DB_PASSWORD\n  value: \"@\"",
        "{\"name\": \"DB_PASSWORD\", \"value\": \"@\"}",
        "machine example.com login me password @",
        "ALTER ROLE app PASSWORD '@'",
        "CREATE USER app IDENTIFIED BY '@'",
        "String password = \"@\"; // for tests",
        "password=\"@\"",
        "$pass = ConvertTo-SecureString '@' -AsPlainText",
        "?user=me&password=@&x=1",
        "config.ini\\npassword=@\\nuser=me",
    ] {
        expect(form, CHANCE, "PASSWORD");
    }
}

#[test]
fn passwords_that_can_be_guessed() {
    for form in ["password: \"@\"", "DB_PASSWORD=@\n", "  password: @\n", "smtp_password=@\n", "'pass' => '@'"] {
        expect(form, "hunter", "PASSWORD");
        expect(form, "banana-split", "PASSWORD");
    }
}

#[test]
fn secrets_behind_names() {
    for form in [
        "client_secret = \"@\"",
        "clientSecret: '@'",
        "API_KEY=@",
        "apiKey := \"@\"",
        "x-api-key: @",
        "\"access_token\": \"@\"",
        "--token @",
        "System.setProperty(\"ACME_TOKEN\", \"@\")",
        "$acmeToken .= \"@\"",
        "acme_TOKEN :::= \"@\"",
        "acme_TOKEN ?= \"@\"",
        "var acmeToken string = \"@\"",
        "acme SECRET @",
        "acmeKEY=@",
        "acme_key = @",
        "<acmeToken>\n    @\n</acmeToken>",
        "//registry.example.com/:_authToken=@",
        "\"tokens\": [\"@\"]",
        "?token=@&callback=x",
        "Authorization: Token @".trim_start_matches("Authorization: "),
    ] {
        expect(form, CHANCE, "GENERIC_SECRET");
        expect(form, HEX, "GENERIC_SECRET");
    }
    expect("acme_token = @", UUID, "GENERIC_SECRET");
    expect("dd-apikey-@", HEX, "DATADOG_KEY");
    expect("acme-apikey-@", HEX, "GENERIC_SECRET");
}

#[test]
fn every_value_of_a_list() {
    let text = "{\"tokens\":[\"1edf45aea11a74be\", \"99317e2ea29752cb\"],\"id\":1}";
    assert_eq!(found(text), [("GENERIC_SECRET", "1edf45aea11a74be"), ("GENERIC_SECRET", "99317e2ea29752cb")]);
}

#[test]
fn vendors_by_name_and_form() {
    expect("DATADOG_API_KEY=@", HEX, "DATADOG_KEY");
    expect("heroku_api_key = \"@\"", UUID, "HEROKU_KEY");
    expect("twilio_auth_token: @", HEX, "TWILIO_KEY");
    expect("aws_secret_access_key = @", "AqXaFvWgCqRmdpprRR+frSw40tk/1lf4wkseFnER", "AWS_SECRET_KEY");
    expect("okta_token: @", "00OD3WdM52-wP7HkxHUwjjw9Ic-36E7UYRq006WSe5", "OKTA_TOKEN");
    expect("heroku_token: @", CHANCE, "GENERIC_SECRET");
    let key = "cfpkwco4nVNu5dUiZnj6CDJgnNsnggHrWyzjxXwF/mJSugiYpCAK66OYT7LjL+AQhsf4thCFExpn23wSblag6B==";
    expect("AccountName=acme;AccountKey=@;EndpointSuffix=core.windows.net", key, "AZURE_STORAGE_KEY");
}

#[test]
fn the_secret_of_an_access_key() {
    let text = "AKIA2OGYBAH6RLKQ7XWZ,\nAqXaFvWgCqRmdpprRR+frSw40tk/1lf4wkseFnER\n";
    assert!(found(text).contains(&("AWS_SECRET_KEY", "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")));
}

#[test]
fn headers_and_commands() {
    expect("Authorization: Bearer @", CHANCE, "BEARER_TOKEN");
    expect("curl -H 'Authorization: Bearer @' https://example.com", HEX, "BEARER_TOKEN");
    expect("Authorization:\n      - Bearer @\n", HEX, "BEARER_TOKEN");
    expect("'Authorization' => 'Basic @'", "bWU6aHVudGVyMg==", "BASIC_AUTH");
    expect("curl -s -u @ https://example.com", "me:hunter2", "BASIC_AUTH");
    expect("curl --user \"@\" https://example.com", "me:hunter2", "BASIC_AUTH");
}

#[test]
fn addresses_and_connection_strings() {
    for (text, kind, value) in [
        ("postgres://app:s3cr3tly@db:5432/app", "DB_URL", "s3cr3tly"),
        ("mongodb+srv://app:s3cr3tly@cluster0/x", "DB_URL", "s3cr3tly"),
        ("redis://:s3cr3tly@cache:6379", "DB_URL", "s3cr3tly"),
        ("jdbc:mysql://app:s3cr3tly@db/app", "DB_URL", "s3cr3tly"),
        ("https://me:s3cr3tly@git/x.git", "URL_CREDENTIALS", "s3cr3tly"),
        (
            "https://b373398b00849944a45ab3eb93c31de5@sentry:9000/1",
            "URL_CREDENTIALS",
            "b373398b00849944a45ab3eb93c31de5",
        ),
        ("Server=db;User Id=sa;Password=s3cr3tly;Encrypt=true", "DB_URL", "s3cr3tly"),
        ("connectionString=\"Host=db;Pwd=s3cr3tly;Port=1\"", "DB_URL", "s3cr3tly"),
    ] {
        assert_eq!(found(text), [(kind, value)], "{text}");
    }
}
