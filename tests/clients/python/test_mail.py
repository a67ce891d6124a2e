"""Alerts by mail, through a mail server that is not ours: aiosmtpd."""

import datetime
import json
import socket
import ssl
import urllib.request
from contextlib import contextmanager
from email import message_from_bytes, policy
from pathlib import Path

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import servers

LOGIN = ("sprag", "hunter2")


class Mailboxes:
    """Keeps what comes, for everybody but nobody."""

    def __init__(self):
        self.mails = []

    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("nobody@"):
            return "550 there is nobody"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        self.mails.append((envelope.mail_from, list(envelope.rcpt_tos), envelope.content, session.ssl is not None))
        return "250 kept"


def certificate(folder: Path) -> ssl.SSLContext:
    """A certificate for localhost, in `cert.pem`."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@contextmanager
def mail_server(folder: Path, security: str, mechanism: str):
    """A mail server that wants a password under TLS, and its mailboxes."""
    context, mailboxes = certificate(folder), Mailboxes()

    def check(server, session, envelope, mechanism, login):
        given = (login.login.decode(), login.password.decode())
        # Not handled: the server itself says what became of it.
        return AuthResult(success=given == LOGIN, handled=False)

    others = [name for name in ("PLAIN", "LOGIN") if name != mechanism]
    options = {"authenticator": check, "auth_required": True, "auth_exclude_mechanism": others}
    if security == "starttls":
        options |= {"tls_context": context, "require_starttls": True}
    else:
        options |= {"ssl_context": context, "auth_require_tls": False, "server_hostname": "localhost"}
    controller = Controller(mailboxes, hostname="127.0.0.1", port=free_port(), **options)
    controller.start()
    try:
        yield controller.port, mailboxes
    finally:
        controller.stop()


def tried(sprag: servers.Sprag) -> dict:
    """Sends a test to the channel."""
    headers = {"authorization": f"Bearer {servers.TOKEN}"}
    url = f"{sprag.admin}/api/v1/alerts/channels/mail/test"
    with urllib.request.urlopen(urllib.request.Request(url, b"", headers, method="POST")) as response:
        return json.load(response)


def channel(port: int, security: str, folder: Path, password: str = LOGIN[1]) -> str:
    return f"""[alerts.channels.mail]
type = "email"
server = "localhost:{port}"
security = "{security}"
username = "{LOGIN[0]}"
password = "{password}"
from = "sprag@example.com"
recipients = ["ops@example.com", "nobody@example.com", "anna@example.com"]
ca_file = "{folder / "cert.pem"}"
allow_private = true
"""


@pytest.mark.parametrize("mechanism", ["PLAIN", "LOGIN"])
@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_a_mail_arrives_at_all_who_can_have_it(provider, tmp_path, security, mechanism):
    with mail_server(tmp_path, security, mechanism) as (port, mailboxes):
        with servers.sprag(provider, tmp_path, channel(port, security, tmp_path)) as sprag:
            answer = tried(sprag)
    assert answer["delivered"], answer
    [(sender, recipients, content, is_encrypted)] = mailboxes.mails
    assert (sender, recipients) == ("sprag@example.com", ["ops@example.com", "anna@example.com"])
    assert is_encrypted or security == "tls"
    mail = message_from_bytes(content, policy=policy.default)
    assert not mail.defects
    assert mail["subject"] == "Sprag: test of mail"
    assert mail["message-id"] == f"<{answer['alert']['id']}@example.com>"
    assert mail["auto-submitted"] == "auto-generated"
    assert "tries the channel mail" in mail.get_body(("plain",)).get_content()
    assert "<!doctype html>" in mail.get_body(("html",)).get_content()


def test_a_wrong_password_sends_nothing_and_says_so(provider, tmp_path):
    with mail_server(tmp_path, "starttls", "LOGIN") as (port, mailboxes):
        with servers.sprag(provider, tmp_path, channel(port, "starttls", tmp_path, "wr0ng-one")) as sprag:
            answer = tried(sprag)
        assert not answer["delivered"] and "535" in answer["error"], answer
        assert "wr0ng-one" not in json.dumps(answer)
    assert mailboxes.mails == []
    assert "wr0ng-one" not in (tmp_path / "sprag.log").read_text()
