"""Tokens of an OpenID Connect identity provider.

PyJWT checks signatures with the issuer's published keys. The key determines the algorithm, never the token, and
symmetric algorithms are not allowed, so a public key cannot be abused as a secret. Keys are fetched again when they are
old or a token names an unknown key, at a limited rate.
"""

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx2
import jwt
from jwt import PyJWK, PyJWKSet

from hubbub.errors import AccessError
from hubbub.server.accounts import Principal
from hubbub.server.settings import OidcSettings, safe_address
from hubbub.server.state import Role

#: Allowed algorithms: public-key signatures only.
ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"})
#: Allowed `typ` headers. Tokens for other purposes, such as logout tokens, have other types.
TYPES = frozenset({"", "jwt", "at+jwt", "application/at+jwt"})

FRESH = 300.0  # seconds after which keys are fetched again
PAUSE = 10.0  # minimum seconds between two fetches
STALE = 86_400.0  # seconds for which old keys are used if the issuer is unreachable
LEEWAY = 30  # seconds of allowed clock skew

_MAX_DOCUMENT = 1_000_000  # bytes of a document from the issuer
_TIMEOUT = 5.0
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)


class IssuerKeys:
    """The issuer's public keys by id, cached. Safe to use from many threads; only one fetches at a time."""

    def __init__(self, settings: OidcSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._clock = clock
        self._fetching = threading.Lock()
        self._keys: dict[str, PyJWK] = {}
        self._fetched = self._tried = float("-inf")

    def find(self, name: str) -> PyJWK | None:
        """Return a key by id, fetching keys if needed; raise AccessError (HB723) if the issuer is unreachable."""
        if name not in self._keys or self._clock() - self._fetched > FRESH:
            self._refresh()
        if self._clock() - self._fetched > STALE:
            wait = max(1, round(self._tried + PAUSE - self._clock()))
            raise AccessError("HB723", "The identity provider is unreachable.", "Try again later.", wait)
        return self._keys.get(name)

    def _refresh(self) -> None:
        # while one thread fetches, the others use the cached keys; they wait only if there are none
        if self._fetching.acquire(timeout=0 if self._keys else 2 * _TIMEOUT):
            try:
                if self._clock() - self._tried > PAUSE:
                    self._fetch()
                    self._tried = self._clock()
            finally:
                self._fetching.release()

    def _fetch(self) -> None:
        try:
            with httpx2.Client(timeout=_TIMEOUT, follow_redirects=False) as client:
                address = self._settings.keys or self._discover(client)
                listed = PyJWKSet.from_dict(_document(client, address))
        except (httpx2.HTTPError, jwt.PyJWTError, *_UNREADABLE):
            return  # keep using the cached keys for a while
        self._keys = {key.key_id: key for key in listed.keys if key.key_id and _signs(key)}
        self._fetched = self._clock()

    def _discover(self, client: httpx2.Client) -> str:
        document = _document(client, self._settings.issuer.rstrip("/") + "/.well-known/openid-configuration")
        address = document["jwks_uri"]
        if document["issuer"] != self._settings.issuer or not safe_address(address):
            raise ValueError("another issuer, or an insecure address")
        return str(address)


class Oidc:
    """Authenticates tokens of the identity provider. Safe to use from many threads."""

    def __init__(self, settings: OidcSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._keys = IssuerKeys(settings, clock)

    def authenticate(self, text: str) -> Principal:
        """Return the principal of a token, or raise AccessError: always the same error, except for an expired token."""
        try:
            header = jwt.get_unverified_header(text)
            name = header.get("kid")
            if not isinstance(name, str) or str(header.get("typ") or "").lower() not in TYPES:
                raise _refused()
            key = self._keys.find(name)
            if key is None:
                raise _refused()
            claims = jwt.decode(
                text,
                key,
                algorithms=[key.algorithm_name],
                audience=self._settings.audience,
                issuer=self._settings.issuer,
                leeway=LEEWAY,
                options={"require": ["exp", "iss", "aud"]},
            )
            return self._principal(claims)
        except jwt.ExpiredSignatureError:
            raise AccessError("HB702", "This token has expired.", "Sign in at your identity provider again.") from None
        except (jwt.PyJWTError, *_UNREADABLE):
            raise _refused() from None

    def role(self, name: str) -> Role:
        """Return the role of a name."""
        if name in self._settings.owners:
            return "owner"
        return "auditor" if name in self._settings.auditors else "analyst"

    def _principal(self, claims: dict[str, Any]) -> Principal:
        name = claims.get(self._settings.claim)
        if not isinstance(name, str) or not name:
            raise _refused()
        if self._settings.claim == "email" and claims.get("email_verified") is not True:
            raise _refused()  # anyone could claim an unverified address
        return Principal(name, self.role(name), None, int(claims["exp"]))


def _document(client: httpx2.Client, address: str) -> dict[str, Any]:
    """Fetch a JSON document of bounded size."""
    content = b""
    with client.stream("GET", address, headers={"Accept": "application/json"}) as response:
        response.raise_for_status()
        if response.is_redirect:
            raise ValueError("redirect")
        for chunk in response.iter_bytes():
            content += chunk
            if len(content) > _MAX_DOCUMENT:
                raise ValueError("too long")
    document = json.loads(content)
    if not isinstance(document, dict):
        raise TypeError("not a JSON object")
    return document


def _signs(key: PyJWK) -> bool:
    return key.algorithm_name in ALGORITHMS and key.public_key_use in ("sig", None)


def _refused() -> AccessError:
    return AccessError(
        "HB704",
        "The identity provider's token was rejected.",
        "Use an unexpired token from the issuer in hubbub.yaml, issued for this service's audience.",
    )
