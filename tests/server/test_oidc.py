"""Tokens of an identity provider, against an issuer that the test starts on loopback: every forgery is refused."""

import base64
import hmac
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from hubbub.errors import AccessError
from hubbub.server.accounts import Accounts, Principal
from hubbub.server.database import SqliteDatabase
from hubbub.server.oidc import FRESH, PAUSE, STALE, Oidc
from hubbub.server.settings import OidcSettings
from hubbub.server.state import State

AUDIENCE = "hubbub"
FIRST = rsa.generate_private_key(public_exponent=65537, key_size=2048)
SECOND = rsa.generate_private_key(public_exponent=65537, key_size=2048)
CURVE = ec.generate_private_key(ec.SECP256R1())
EDWARDS = ed25519.Ed25519PrivateKey.generate()


def published(key: RSAPrivateKey, name: str, **more: str) -> dict[str, Any]:
    return {**RSAAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": name, "alg": "RS256", "use": "sig", **more}


class Issuer:
    """An identity provider on loopback, whose documents a test may change."""

    def __init__(self) -> None:
        self.keys: list[dict[str, Any]] = [published(FIRST, "first")]
        self.documents: dict[str, Any] = {}
        self.fetched: list[str] = []
        self.broken = False
        self.slow = 0.0
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.fetched.append(self.path)
                time.sleep(issuer.slow)
                body = json.dumps(issuer.document(self.path)).encode()
                self.send_response(500 if issuer.broken else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def document(self, path: str) -> Any:
        if path in self.documents:
            return self.documents[path]
        if path == "/.well-known/openid-configuration":
            return {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
        return {"keys": self.keys}

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def claims(self, **changes: Any) -> dict[str, Any]:
        now = int(time.time())
        claims = {"iss": self.url, "aud": AUDIENCE, "sub": "ana", "iat": now, "exp": now + 600} | changes
        return {name: value for name, value in claims.items() if value is not None}

    def token(self, key: Any = FIRST, name: str | None = "first", algorithm: str = "RS256", **changes: Any) -> str:
        headers = {} if name is None else {"kid": name}
        return jwt.encode(self.claims(**changes), key, algorithm=algorithm, headers=headers)


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    found = Issuer()
    yield found
    found.close()


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def oidc(issuer: Issuer, clock: Clock) -> Oidc:
    settings = OidcSettings(issuer.url, AUDIENCE, owners=frozenset({"olga"}), auditors=frozenset({"aude"}))
    return Oidc(settings, clock)


def refused(oidc: Oidc, text: str, code: str = "HB704") -> None:
    with pytest.raises(AccessError) as error:
        oidc.authenticate(text)
    assert error.value.code == code
    assert text not in str(error.value)


def test_a_good_token_names_its_analyst(issuer: Issuer, oidc: Oidc) -> None:
    exp = int(time.time()) + 300
    assert oidc.authenticate(issuer.token(exp=exp)) == Principal("ana", "analyst", None, exp)
    assert oidc.authenticate(issuer.token(sub="olga")).role == "owner"
    assert oidc.authenticate(issuer.token(sub="aude")).role == "auditor"
    assert oidc.authenticate(issuer.token(aud=["other", AUDIENCE])).name == "ana"


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://evil.example"},
        {"iss": None},
        {"iss": ""},
        {"iss": ["x"]},
        {"aud": "other"},
        {"aud": None},
        {"aud": []},
        {"aud": ["other"]},
        {"aud": "hubbub2"},
        {"aud": {"hubbub": 1}},
        {"exp": None},
        {"exp": "tomorrow"},
        {"nbf": int(time.time()) + 3600},
        {"iat": int(time.time()) + 3600},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": ["ana"]},
    ],
)
def test_a_token_of_another_issuer_for_another_service_or_another_time_is_refused(
    issuer: Issuer, oidc: Oidc, changes: dict[str, Any]
) -> None:
    now = int(time.time())
    header = {"alg": "RS256", "kid": "first", "typ": "JWT"}
    claims = {"iss": issuer.url, "aud": AUDIENCE, "sub": "ana", "iat": now, "exp": now + 600} | changes
    claims = {name: value for name, value in claims.items() if value is not None}
    refused(oidc, jwt.api_jws.encode(json.dumps(claims).encode(), FIRST, "RS256", header))


def test_an_expired_token_is_refused_and_its_holder_told(issuer: Issuer, oidc: Oidc) -> None:
    refused(oidc, issuer.token(exp=int(time.time()) - 60), "HB702")
    refused(oidc, issuer.token(SECOND, exp=int(time.time()) - 60))  # but nobody who only guesses


def test_a_signature_by_another_key_is_refused(issuer: Issuer, oidc: Oidc) -> None:
    refused(oidc, issuer.token(SECOND))
    good = issuer.token()
    head, body, seal = good.split(".")
    refused(oidc, f"{head}.{body}.{seal[:-8]}AAAAAAAA")
    other = base64.urlsafe_b64encode(json.dumps(issuer.claims(sub="olga")).encode()).rstrip(b"=").decode()
    refused(oidc, f"{head}.{other}.{seal}")
    refused(oidc, f"{head}.{body}.")


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", ""])
def test_a_token_that_claims_to_need_no_signature_is_refused(issuer: Issuer, oidc: Oidc, algorithm: str) -> None:
    def part(content: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()

    for name in ("first", "other"):
        refused(oidc, f"{part({'alg': algorithm, 'kid': name})}.{part(issuer.claims(sub='olga'))}.")
        refused(oidc, f"{part({'alg': algorithm, 'kid': name})}.{part(issuer.claims(sub='olga'))}.AAAA")


def test_the_public_key_used_as_a_secret_is_refused(issuer: Issuer, oidc: Oidc) -> None:
    """HS256 with the public key as its secret, in each form in which the key is published."""
    public = FIRST.public_key()
    forms = [
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        public.public_bytes(Encoding.PEM, PublicFormat.PKCS1),
        public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        json.dumps(issuer.keys[0]).encode(),
    ]
    for secret in forms:
        head = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"first","typ":"JWT"}').rstrip(b"=")
        body = base64.urlsafe_b64encode(json.dumps(issuer.claims(sub="olga")).encode()).rstrip(b"=")
        seal = base64.urlsafe_b64encode(hmac.digest(secret, head + b"." + body, sha256)).rstrip(b"=")
        refused(oidc, b".".join((head, body, seal)).decode())


def test_a_shared_secret_among_the_keys_is_not_used(issuer: Issuer, oidc: Oidc) -> None:
    secret = b"0123456789abcdef0123456789abcdef"
    encoded = base64.urlsafe_b64encode(secret).rstrip(b"=").decode()
    issuer.keys.append({"kty": "oct", "k": encoded, "kid": "shared", "alg": "HS256", "use": "sig"})
    refused(oidc, issuer.token(secret, "shared", "HS256"))


def test_a_key_for_encryption_is_not_used_for_signatures(issuer: Issuer, oidc: Oidc) -> None:
    issuer.keys.append(published(SECOND, "second", use="enc"))
    refused(oidc, issuer.token(SECOND, "second"))


def test_the_keys_own_algorithm_counts_not_the_tokens(issuer: Issuer, oidc: Oidc) -> None:
    refused(oidc, issuer.token(algorithm="RS512"))
    refused(oidc, issuer.token(algorithm="PS256"))


def test_curves_are_accepted_as_the_issuer_publishes_them(issuer: Issuer, oidc: Oidc) -> None:
    issuer.keys += [
        {**ECAlgorithm.to_jwk(CURVE.public_key(), as_dict=True), "kid": "curve"},
        {**OKPAlgorithm.to_jwk(EDWARDS.public_key(), as_dict=True), "kid": "edwards"},
    ]
    assert oidc.authenticate(issuer.token(CURVE, "curve", "ES256")).name == "ana"
    assert oidc.authenticate(issuer.token(EDWARDS, "edwards", "EdDSA")).name == "ana"
    refused(oidc, issuer.token(CURVE, "edwards", "ES256"))


def test_keys_in_the_token_itself_are_not_looked_at(issuer: Issuer, oidc: Oidc) -> None:
    own = {key: value for key, value in published(SECOND, "mine").items() if key != "use"}
    for headers in (
        {"kid": "mine", "jwk": own},
        {"kid": "first", "jwk": own},
        {"kid": "x", "jku": f"{issuer.url}/mine"},
    ):
        refused(oidc, jwt.encode(issuer.claims(sub="olga"), SECOND, algorithm="RS256", headers=headers))
    assert "/mine" not in issuer.fetched


def test_a_token_without_the_name_of_a_key_is_refused(issuer: Issuer, oidc: Oidc) -> None:
    refused(oidc, issuer.token(name=None))


@pytest.mark.parametrize("kind", ["logout+jwt", "dpop+jwt", "secevent+jwt", "JWS"])
def test_a_token_for_another_end_is_refused(issuer: Issuer, oidc: Oidc, kind: str) -> None:
    text = jwt.encode(issuer.claims(), FIRST, algorithm="RS256", headers={"kid": "first", "typ": kind})
    refused(oidc, text)


@pytest.mark.parametrize(
    "text",
    [
        "..",
        "a.b.c",
        "é.é.é",
        "." * 100,
        "eyJhbGciOiJSUzI1NiJ9..",
        "W10.W10.W10",
        base64.urlsafe_b64encode(b"[" * 5000).decode() + ".e30.AA",
        "bnVsbA.bnVsbA.AA",
    ],
)
def test_what_is_no_token_is_refused_like_a_wrong_one(oidc: Oidc, text: str) -> None:
    refused(oidc, text)


def test_deep_and_endless_claims_are_refused_not_a_crash(issuer: Issuer, oidc: Oidc) -> None:
    for body in (b"[" * 5000, b'{"exp": 1e999, "iss": 1}', b'{"exp": NaN}', b"\xff", b'"text"', b"1"):
        refused(oidc, jwt.api_jws.encode(body, FIRST, "RS256", {"kid": "first"}))
    claims = json.dumps(issuer.claims()).replace(str(issuer.claims()["exp"]), "1e999")
    refused(oidc, jwt.api_jws.encode(claims.encode(), FIRST, "RS256", {"kid": "first"}))


def test_a_new_key_is_found_and_the_old_one_is_forgotten(issuer: Issuer, oidc: Oidc, clock: Clock) -> None:
    assert oidc.authenticate(issuer.token()).name == "ana"
    issuer.keys = [published(SECOND, "second")]
    clock.now += PAUSE + 1
    assert oidc.authenticate(issuer.token(SECOND, "second")).name == "ana"
    refused(oidc, issuer.token())


def test_a_key_that_was_withdrawn_is_forgotten_after_a_while(issuer: Issuer, oidc: Oidc, clock: Clock) -> None:
    assert oidc.authenticate(issuer.token()).name == "ana"
    issuer.keys = [published(SECOND, "second")]
    clock.now += FRESH + 1
    refused(oidc, issuer.token())


def test_unknown_keys_do_not_make_us_ask_the_issuer_again_and_again(issuer: Issuer, oidc: Oidc, clock: Clock) -> None:
    for number in range(50):
        refused(oidc, issuer.token(SECOND, f"guess {number}"))
    assert issuer.fetched.count("/keys") == 1
    clock.now += PAUSE + 1
    refused(oidc, issuer.token(SECOND, "guess"))
    assert issuer.fetched.count("/keys") == 2


def test_while_the_issuer_is_away_its_keys_hold_for_a_time(issuer: Issuer, oidc: Oidc, clock: Clock) -> None:
    good = issuer.token()
    assert oidc.authenticate(good).name == "ana"
    issuer.broken = True
    clock.now += FRESH + 1
    assert oidc.authenticate(good).name == "ana"
    clock.now += STALE
    refused(oidc, good, "HB723")
    issuer.broken = False
    refused(oidc, good, "HB723")  # not before the pause is over
    clock.now += PAUSE + 1
    assert oidc.authenticate(good).name == "ana"


def test_without_any_key_it_says_when_to_come_again(issuer: Issuer, oidc: Oidc) -> None:
    issuer.broken = True
    with pytest.raises(AccessError) as error:
        oidc.authenticate(issuer.token())
    assert error.value.code == "HB723"
    assert 1 <= error.value.wait <= PAUSE
    refused(oidc, issuer.token(), "HB723")
    assert len(issuer.fetched) == 1


def test_all_who_come_first_wait_for_one_fetch(issuer: Issuer, oidc: Oidc) -> None:
    issuer.slow = 0.2
    token = issuer.token()
    with ThreadPoolExecutor(8) as pool:
        assert {who.name for who in pool.map(oidc.authenticate, [token] * 8)} == {"ana"}
    assert issuer.fetched.count("/keys") == 1


@pytest.mark.parametrize(
    "document",
    [
        {"issuer": "https://evil.example", "jwks_uri": "URL/keys"},
        {"issuer": "URL"},
        [],
        {"issuer": "URL", "jwks_uri": 7},
        {"issuer": "URL", "jwks_uri": "http://192.0.2.1/keys"},
        {"issuer": "URL", "jwks_uri": "file:///etc/passwd"},
    ],
)
def test_a_discovery_that_points_elsewhere_is_not_followed(issuer: Issuer, oidc: Oidc, document: Any) -> None:
    issuer.documents["/.well-known/openid-configuration"] = json.loads(json.dumps(document).replace("URL", issuer.url))
    refused(oidc, issuer.token(), "HB723")
    assert issuer.fetched == ["/.well-known/openid-configuration"]


@pytest.mark.parametrize("document", [{}, {"keys": []}, {"keys": [7, {}]}, {"keys": "x"}, [1], None, "x" * 1_100_000])
def test_broken_key_sets_are_no_keys(issuer: Issuer, oidc: Oidc, document: Any) -> None:
    issuer.documents["/keys"] = document
    refused(oidc, issuer.token(), "HB723")


def test_keys_can_be_named_directly(issuer: Issuer) -> None:
    oidc = Oidc(OidcSettings("https://issuer.example", AUDIENCE, keys=f"{issuer.url}/keys"))
    assert oidc.authenticate(issuer.token(iss="https://issuer.example")).name == "ana"
    assert issuer.fetched == ["/keys"]


def test_an_address_counts_only_when_the_issuer_has_verified_it(issuer: Issuer) -> None:
    oidc = Oidc(OidcSettings(issuer.url, AUDIENCE, claim="email"))
    assert oidc.authenticate(issuer.token(email="ana@clinic.example", email_verified=True)).name == "ana@clinic.example"
    refused(oidc, issuer.token(email="ana@clinic.example"))
    refused(oidc, issuer.token(email="ana@clinic.example", email_verified="true"))
    refused(oidc, issuer.token(email="ana@clinic.example", email_verified=False))


def test_a_good_token_of_somebody_who_is_no_analyst_here_is_refused(issuer: Issuer, oidc: Oidc, tmp_path: Path) -> None:
    state = State(SqliteDatabase(tmp_path / "server.db"))
    names = {"ana"}
    accounts = Accounts(state, analysts=lambda: names, oidc=oidc)
    principal = accounts.authenticate(f"Bearer {issuer.token()}")
    assert principal.name == "ana"
    assert accounts.still(principal) == principal
    with pytest.raises(AccessError, match="HB705"):
        accounts.authenticate(f"Bearer {issuer.token(sub='mallory')}")
    names.clear()
    with pytest.raises(AccessError, match="HB705"):
        accounts.authenticate(f"Bearer {issuer.token()}")
    with pytest.raises(AccessError, match="HB705"):
        accounts.still(principal)
    with pytest.raises(AccessError, match="HB701"):
        accounts.still(Principal("ana", "owner", None, principal.expires))
    state.close()


def test_without_a_provider_its_tokens_are_only_wrong_tokens(issuer: Issuer, tmp_path: Path) -> None:
    state = State(SqliteDatabase(tmp_path / "server.db"))
    with pytest.raises(AccessError, match="HB701"):
        Accounts(state, analysts=lambda: ["ana"]).authenticate(f"Bearer {issuer.token()}")
    assert issuer.fetched == []
    state.close()
