"""Signing in: versions, SCRAM with and without TLS, and who is refused."""

import base64
import hashlib
import re
import ssl
import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.gateway.conftest import Port, Starter
from tests.gateway.raw import RawClient

from hubbub.gateway import listener, wire
from hubbub.server.limits import RateLimit


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A certificate for localhost, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    paths = {"certificate": folder / "certificate.pem", "key": folder / "key.pem"}
    paths["certificate"].write_bytes(made.public_bytes(Encoding.PEM))
    paths["key"].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    paths["key"].chmod(0o600)
    return paths


def trusting(paths: dict[str, Path]) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(paths["certificate"]))


def test_a_token_is_the_password_and_is_never_sent(shared_port: Port) -> None:
    assert shared_port.connect().execute("SELECT current_user").fetchone() == ("ana",)


@pytest.mark.parametrize("token", ["", "hub_0123456789ab_" + "x" * 43])
def test_a_wrong_token_is_refused_and_counted(start_port: Starter, token: str) -> None:
    port = start_port()
    codes = []
    for _ in range(5):
        with RawClient(port.number) as client, pytest.raises(PermissionError) as caught:
            client.sign_in(token)
        codes.append(re.findall(rb"HB\d+", caught.value.args[0])[0])
    assert codes[0] == b"HB701"
    assert codes[-1] == b"HB721"
    with pytest.raises(psycopg.OperationalError, match="HB721"):
        port.connect()  # also with the right token: the address has to wait


def test_the_token_of_somebody_else_is_refused(shared_port: Port) -> None:
    with RawClient(shared_port.number) as client, pytest.raises(PermissionError, match="HB701"):
        client.sign_in(shared_port.tokens["ben"], "ana")
    with RawClient(shared_port.number) as client, pytest.raises(PermissionError, match="HB701"):
        client.sign_in(shared_port.tokens["ana"], "nobody")


def test_a_token_that_an_earlier_version_made_works_after_one_use_over_http(start_port: Starter) -> None:
    port = start_port()
    token = port.service.state.tokens.list("ana")[0]
    port.service.state._database.write("UPDATE tokens SET verifier = NULL WHERE id = ?", (token.id,))
    with pytest.raises(psycopg.OperationalError, match="HB701"):
        port.connect()
    port.service.accounts.identify(port.tokens["ana"])
    assert port.connect().execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize(("minor", "size"), [(0, 4), (2, 32), (9, 32)])
def test_later_versions_are_negotiated_down(shared_port: Port, minor: int, size: int) -> None:
    with RawClient(shared_port.number) as client:
        client.startup(version=3 << 16 | minor, **({"_pq_.fancy": "1"} if minor == 9 else {}))
        if minor > 2:
            kind, content = client.receive()
            assert (kind, content) == (b"v", struct.pack(">ii", 3 << 16 | 2, 1) + b"_pq_.fancy\0")
        client.answer_scram(shared_port.tokens["ana"])
        assert len(dict(client.until())[b"K"]) == 4 + size


@pytest.mark.parametrize("version", [2 << 16, 4 << 16, 0, 1])
def test_other_versions_are_refused(shared_port: Port, version: int) -> None:
    with RawClient(shared_port.number) as client:
        client.startup(version=version)
        kind, content = client.receive()
        assert kind == b"E"
        assert b"HB805" in content


def test_tls_with_channel_binding(start_port: Starter, certificate: dict[str, Path]) -> None:
    port = start_port(**certificate)
    port.service.attempts_limit = RateLimit(1_000_000)
    options: dict[str, Any] = {"sslmode": "verify-full", "sslrootcert": certificate["certificate"]}
    connection = port.connect(host="localhost", channel_binding="require", **options)
    assert connection.execute("SELECT 1").fetchone() == (1,)
    assert connection.pgconn.ssl_in_use
    pem = x509.load_pem_x509_certificate(certificate["certificate"].read_bytes())
    binding = hashlib.sha256(pem.public_bytes(Encoding.DER)).digest()
    cases = [
        (b"p=tls-server-end-point,,", binding, "SCRAM-SHA-256-PLUS", None),
        (b"p=tls-server-end-point,,", b"another certificate", "SCRAM-SHA-256-PLUS", b"HB701"),
        (b"p=tls-unique,,", binding, "SCRAM-SHA-256-PLUS", b"HB805"),
        (b"y,,", b"", "SCRAM-SHA-256", b"HB701"),  # somebody hid from the client that binding is offered
        (b"n,,", b"", "SCRAM-SHA-256-PLUS", b"HB701"),
        (b"n,,", b"", "SCRAM-SHA-256", None),
    ]
    for header, bound, name, code in cases:
        with RawClient(port.number) as client:
            client.encrypt(trusting(certificate))
            client.startup()
            try:
                client.answer_scram(port.tokens["ana"], header, bound, name)
                refused = b""
            except PermissionError as error:
                refused = error.args[0]
            assert (code or b"") in refused
            assert bool(refused) == (code is not None)


def test_tls_may_begin_at_once(start_port: Starter, certificate: dict[str, Path]) -> None:
    port = start_port(**certificate)
    with RawClient(port.number) as client:
        context = trusting(certificate)
        context.set_alpn_protocols(["postgresql"])
        client.socket = context.wrap_socket(client.socket, server_hostname="localhost")
        client.startup()
        client.answer_scram(port.tokens["ana"])
        assert b"K" in dict(client.until())


def test_nothing_sent_before_the_handshake_counts_afterwards(start_port: Starter, certificate: dict[str, Path]) -> None:
    port = start_port(**certificate)
    with RawClient(port.number) as client:
        injected = struct.pack(">ii", 8 + 10, 3 << 16) + b"user\0eve\0\0"
        client.send(struct.pack(">ii", 8, wire.SSL_REQUEST) + injected)
        assert client.socket.recv(1) == b"S"
        with pytest.raises((ssl.SSLError, OSError)):
            trusting(certificate).wrap_socket(client.socket, server_hostname="localhost")


def test_a_client_on_another_machine_must_encrypt(start_port: Starter, monkeypatch: pytest.MonkeyPatch) -> None:
    port = start_port()
    monkeypatch.setattr(listener, "_is_local", lambda _: False)
    with pytest.raises(psycopg.OperationalError, match="HB806"):
        port.connect()


def test_passwords_over_tls_where_they_are_configured(start_port: Starter, certificate: dict[str, Path]) -> None:
    port = start_port(configured={"password": True}, **certificate)
    connection = port.connect(host="localhost", sslmode="require")
    assert connection.pgconn.used_password
    for who, token in (("ana", port.tokens["ben"]), ("ben", "x")):
        with pytest.raises(psycopg.OperationalError, match="HB701"):
            port.connect(who, host="localhost", sslmode="require", password=token)
    with RawClient(port.number) as client:  # without TLS, the token itself is not asked for
        client.startup()
        assert client.receive()[1][:4] == struct.pack(">i", 10)


@pytest.mark.parametrize(
    "message",
    [
        wire.message(b"p", b"SCRAM-SHA-256\0" + struct.pack(">i", 5) + b"n,,n="),
        wire.message(b"p", b"SCRAM-SHA-1\0" + struct.pack(">i", 9) + b"n,,n=,r=a"),
        wire.message(b"p", b"SCRAM-SHA-256\0" + struct.pack(">i", 9) + b"n,,n=,r=\xff"),
        wire.message(b"p", b"SCRAM-SHA-256\0" + struct.pack(">i", 2**30)),
        wire.message(b"Q", b"SELECT 1\0"),
        b"p" + struct.pack(">i", 2**30),
    ],
)
def test_a_wrong_message_ends_the_attempt(shared_port: Port, message: bytes) -> None:
    with RawClient(shared_port.number) as client:
        client.startup()
        client.receive()
        client.send(message)
        kind, content = client.receive()
        assert kind == b"E"
        assert b"HB805" in content
        assert base64.b64encode(b"x") not in content
