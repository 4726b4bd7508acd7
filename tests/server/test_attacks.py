"""Ways into a running service that must stay shut, tried over HTTP as an attacker would."""

import datetime
import json
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx2
import jwt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from jwt.algorithms import ECAlgorithm

from hubbub.server.limits import RateLimit
from hubbub.server.settings import OidcSettings

ME = "/api/v1/me"


def unlimited(world: Any) -> Any:
    """Let as many attempts through as a test needs."""
    world.service.attempts_limit = RateLimit(1_000_000)
    return world


def strict(world: Any) -> Any:
    """Let three attempts through and then one a minute, so that a slow machine gives nothing away."""
    world.service.attempts_limit = RateLimit(1, burst=3)
    return world


def raw(url: str, *lines: bytes) -> tuple[int, bytes]:
    """Send a request byte by byte as given, and give the status and all of the answer."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as wire:
        wire.sendall(
            b"\r\n".join((b"GET " + ME.encode() + b" HTTP/1.1", b"Host: x", *lines, b"Connection: close", b"", b""))
        )
        answer = b""
        while chunk := wire.recv(65536):
            answer += chunk
    return int(answer.split(b" ", 2)[1] or 0), answer


def test_nobody_is_who_a_header_or_an_address_says(shared: Any) -> None:
    names = (
        "X-User",
        "X-Remote-User",
        "Remote-User",
        "X-Forwarded-User",
        "X-Auth-Request-User",
        "X-Hubbub-Analyst",
        "User-Name",
        "X-Api-Key",
        "Token",
        "X-Token",
        "Cookie",
        "From",
        "Proxy-Authorization",
    )
    for name in names:
        for value in ("owner", shared.tokens["owner"], f"hubbub={shared.tokens['owner']}"):
            assert shared.client(None).get(ME, headers={name: value}).status_code == 401
    for query in (f"?token={shared.tokens['owner']}", f"?access_token={shared.tokens['owner']}", "?user=owner"):
        assert shared.client(None).get(ME + query).status_code in (401, 422)
    claimed = {"X-User": "owner", "X-Forwarded-User": "owner", "X-Role": "owner"}
    assert shared.client("ana").get(ME, headers=claimed).json()["role"] == "analyst"
    assert shared.client("ana").get("/api/v1/tokens", headers=claimed).status_code == 403


def test_a_refusal_asks_for_a_token_and_is_the_same_whatever_was_wrong(start_app: Callable[..., Any]) -> None:
    world = unlimited(start_app())
    good = world.tokens["ana"]
    wrong = [good[:-1], good[:-1] + "é", f"hub_{'0' * 12}_{good[17:]}", good.upper(), "x", "a.b.c"]
    answers = [world.client(None).get(ME, headers=[(b"authorization", f"Bearer {text}".encode())]) for text in wrong]
    assert {answer.status_code for answer in answers} == {401}
    assert {answer.headers["www-authenticate"] for answer in answers} == {answers[0].headers["www-authenticate"]}
    bodies = [{k: v for k, v in answer.json().items() if k != "instance"} for answer in answers]
    assert all(body == bodies[0] for body in bodies)
    assert bodies[0]["code"] == "HB701"
    assert {len(answer.content) for answer in answers} == {len(answers[0].content)}


def test_odd_headers_on_the_wire_are_refused_and_the_server_lives(start_served: Callable[..., Any]) -> None:
    world = unlimited(start_served())
    good = b"Authorization: Bearer " + world.tokens["ana"].encode()
    assert raw(world.url, good)[0] == 200
    for lines in (
        (good, good),
        (good, b"authorization: Bearer x"),
        (b"Authorization: Bearer x", good),
        (good + b", Bearer x",),
        (good + b"\xff\xfe",),
        (good + b"\xc3\xa9",),
        (b"Authorization: Bearer " + b"A" * 16_000,),
        (b"Authorization : Bearer " + world.tokens["ana"].encode(),),
        (b"Authorization:\x00Bearer " + world.tokens["ana"].encode(),),
        (b"Authorization: Basic " + world.tokens["ana"].encode(),),
    ):
        assert raw(world.url, *lines)[0] in (400, 401), lines
    for flood in ((b"X: " + b"A" * 5_000_000,), tuple(b"X%d: y" % n for n in range(50_000))):
        with suppress(OSError):  # to hang up is an answer too
            assert raw(world.url, *flood)[0] in (400, 401, 431)
    assert world.client("ben").get("/healthz").status_code == 200


def test_guessing_is_slowed_down_for_the_guesser_alone(start_app: Callable[..., Any]) -> None:
    world = strict(start_app())
    id_ = world.tokens["owner"][4:16]
    statuses = []
    for number in range(100):
        guess = world.client(None, client=("198.51.100.7", number))
        answer = guess.get(ME, headers={"Authorization": f"Bearer hub_{id_}_{number:043d}"})
        statuses.append(answer.status_code)
        if answer.status_code == 429:
            assert int(answer.headers["retry-after"]) >= 1
            assert answer.json()["code"] == "HB721"
    assert 3 <= statuses.count(401) <= 6
    assert statuses.count(401) + statuses.count(429) == 100
    # the right token from that address must wait too, or the limit would limit nothing
    right = {"Authorization": f"Bearer {world.tokens['owner']}"}
    assert world.client(None, client=("198.51.100.7", 1)).get(ME, headers=right).status_code == 429
    assert world.client(None, client=("198.51.100.8", 1)).get(ME, headers=right).status_code == 200


def test_a_made_up_forwarded_address_does_not_get_round_the_limit(start_served: Callable[..., Any]) -> None:
    world = strict(start_served())
    statuses = []
    with httpx2.Client(base_url=world.url) as guesser:
        for number in range(60):
            headers = {
                "Authorization": f"Bearer hub_{number:012d}_{'A' * 43}",
                "X-Forwarded-For": f"203.0.113.{number}",
                "X-Real-IP": f"203.0.113.{number}",
                "Forwarded": f"for=203.0.113.{number}",
            }
            statuses.append(guesser.get(ME, headers=headers).status_code)
    assert statuses.count(401) <= 6


def test_behind_a_proxy_the_address_that_the_proxy_saw_counts(start_served: Callable[..., Any]) -> None:
    world = strict(start_served(behind_proxy=True))
    with httpx2.Client(base_url=world.url) as proxy:

        def guess(number: int, seen: str) -> int:
            """A client that makes up addresses in front; the proxy adds the one that it saw."""
            headers = {
                "Authorization": f"Bearer hub_{number:012d}_{'A' * 43}",
                "X-Forwarded-For": f"203.0.113.{number}, {seen}",
            }
            return proxy.get(ME, headers=headers).status_code

        statuses = [guess(number, "198.51.100.7") for number in range(60)]
        assert statuses.count(401) <= 6
        assert guess(61, "198.51.100.8") == 401


def test_one_person_with_many_tokens_has_one_allowance(start_app: Callable[..., Any]) -> None:
    world = start_app(per_minute=60)
    second = world.service.accounts.issue("ana", "analyst", 1).text
    statuses = []
    for number in range(40):
        header = {"Authorization": f"Bearer {second if number % 2 else world.tokens['ana']}"}
        answer = world.client(None).get(ME, headers=header)
        statuses.append(answer.status_code)
    assert statuses[:10] == [200] * 10
    assert 429 in statuses
    assert statuses.count(200) < 20
    assert world.client("ben").get(ME).status_code == 200


def test_no_token_reaches_a_log(start_app: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> None:
    world = start_app()
    log = logging.getLogger("hubbub")
    before = log.propagate
    log.propagate = True
    try:
        with caplog.at_level(logging.DEBUG):
            world.client("ana").get(ME)
            world.client(None).get(ME, headers={"Authorization": f"Bearer {world.tokens['owner'][:-1]}x"})
            world.client("owner").post("/api/v1/tokens", json={"name": "ana", "role": "analyst", "days": 1})
    finally:
        log.propagate = before
    assert caplog.records
    written = "\n".join(f"{record.getMessage()} {vars(record)}" for record in caplog.records)
    for text in world.tokens.values():
        assert text[17:-1] not in written


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate of this machine, signed by itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = tmp_path / "cert.pem", tmp_path / "key.pem"
    paths[0].write_bytes(made.public_bytes(Encoding.PEM))
    paths[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return paths


def test_with_tls_the_cookie_is_for_https_on_this_host_alone(
    start_served: Callable[..., Any], certificate: tuple[Path, Path]
) -> None:
    world = start_served(certificate=certificate[0], key=certificate[1])
    trust = ssl.create_default_context(cafile=str(certificate[0]))
    with httpx2.Client(base_url=world.url.replace("http://", "https://"), verify=trust) as browser:
        assert browser.get(ME, headers={"Authorization": f"Bearer {world.tokens['ana']}"}).status_code == 200
        cookie = browser.get("/sign-in").headers["set-cookie"]
    assert cookie.startswith("__Host-hubbub=")
    for word in ("secure", "httponly", "samesite=strict", "path=/"):
        assert word in cookie.lower()
    assert "domain" not in cookie.lower()
    with pytest.raises(httpx2.HTTPError), httpx2.Client(base_url=world.url) as plain:
        plain.get(ME)


@pytest.fixture
def issuer_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@pytest.fixture
def keys_url(issuer_key: ec.EllipticCurvePrivateKey) -> Iterator[str]:
    """The keys of an identity provider, on loopback."""
    body = json.dumps({"keys": [{**ECAlgorithm.to_jwk(issuer_key.public_key(), as_dict=True), "kid": "k"}]}).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/keys"
        server.shutdown()
        thread.join()


def test_people_of_an_identity_provider_come_in_by_its_tokens(
    start_app: Callable[..., Any], keys_url: str, issuer_key: ec.EllipticCurvePrivateKey
) -> None:
    oidc = OidcSettings("https://issuer.example", "hubbub", keys=keys_url, owners=frozenset({"olga"}))
    world = unlimited(start_app(oidc=oidc))
    later = int(datetime.datetime.now(datetime.UTC).timestamp()) + 300

    def get(path: str = ME, key: Any = issuer_key, **claims: Any) -> httpx2.Response:
        content = {"iss": "https://issuer.example", "aud": "hubbub", "sub": "ana", "exp": later} | claims
        text = jwt.encode(content, key, algorithm="ES256", headers={"kid": "k"})
        answer: httpx2.Response = world.client(None).get(path, headers={"Authorization": f"Bearer {text}"})
        return answer

    assert get().json() == {"name": "ana", "role": "analyst", "expires": later}
    assert get(sub="olga").json()["role"] == "owner"
    assert get("/api/v1/tokens").status_code == 403
    assert get("/api/v1/tokens", sub="olga").status_code == 200
    for claims, expected in (
        ({"sub": "mallory"}, (403, "HB705")),
        ({"aud": "other"}, (401, "HB704")),
        ({"iss": "https://evil.example"}, (401, "HB704")),
        ({"exp": later - 3600}, (401, "HB702")),
        ({"key": ec.generate_private_key(ec.SECP256R1())}, (401, "HB704")),
    ):
        answer = get(**claims)
        assert (answer.status_code, answer.json()["code"]) == expected
