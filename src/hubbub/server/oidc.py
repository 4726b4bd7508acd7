"""Tokens of an identity provider (OpenID Connect): signed by its keys, meant for us, still good; then a claim says who.

The signature is checked by PyJWT with the issuer's published keys. Which algorithm is right is said by the key, never
by the token, and secret-key algorithms are not among them, so a public key cannot be used as a secret. Keys are fetched
again when they are old or when a token names one that is not there, but not more than once in a while, whoever asks.
"""

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx
import jwt
from jwt import PyJWK, PyJWKSet

from hubbub.errors import AccessError
from hubbub.server.accounts import Principal
from hubbub.server.settings import OidcSettings, safe_address
from hubbub.server.state import Role

#: What a key may be for: public-key signatures only.
ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"})
#: What a token may call itself. Those for other ends, such as signing out, say so here.
TYPES = frozenset({"", "jwt", "at+jwt", "application/at+jwt"})

FRESH = 300.0  # seconds after which keys are fetched again
PAUSE = 10.0  # seconds between two fetches, whatever tokens say
STALE = 86_400.0  # seconds for which keys are used though the issuer does not answer
LEEWAY = 30  # seconds by which clocks may differ

_LARGEST = 1_000_000  # bytes of a document of the issuer
_TIMEOUT = 5.0
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)


class Keys:
    """The issuer's keys, by their names. Safe to use from many threads; one of them fetches."""

    def __init__(self, settings: OidcSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._clock = clock
        self._fetching = threading.Lock()
        self._found: dict[str, PyJWK] = {}
        self._fetched = self._tried = float("-inf")

    def find(self, name: str) -> PyJWK | None:
        """Find a key, fetching them where that may help; raise AccessError (HB723) where none could be had."""
        if name not in self._found or self._clock() - self._fetched > FRESH:
            self._refresh()
        if self._clock() - self._fetched > STALE:
            wait = max(1, round(self._tried + PAUSE - self._clock()))
            raise AccessError("HB723", "the identity provider does not answer.", "Try again later.", wait)
        return self._found.get(name)

    def _refresh(self) -> None:
        # whoever comes while another fetches goes on with the keys there are; only where there are none, all wait
        if self._fetching.acquire(timeout=0 if self._found else 2 * _TIMEOUT):
            try:
                if self._clock() - self._tried > PAUSE:
                    self._fetch()
                    self._tried = self._clock()
            finally:
                self._fetching.release()

    def _fetch(self) -> None:
        try:
            with httpx.Client(timeout=_TIMEOUT, follow_redirects=False) as client:
                address = self._settings.keys or self._discover(client)
                listed = PyJWKSet.from_dict(_document(client, address))
        except (httpx.HTTPError, jwt.PyJWTError, *_UNREADABLE):
            return  # the keys of before stand in, for a time
        self._found = {key.key_id: key for key in listed.keys if key.key_id and _signs(key)}
        self._fetched = self._clock()

    def _discover(self, client: httpx.Client) -> str:
        found = _document(client, self._settings.issuer.rstrip("/") + "/.well-known/openid-configuration")
        address = found["jwks_uri"]
        if found["issuer"] != self._settings.issuer or not safe_address(address):
            raise ValueError("another issuer, or an address that anybody could answer for")
        return str(address)


class Oidc:
    """Says whom a token of the identity provider names. Safe to use from many threads."""

    def __init__(self, settings: OidcSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._keys = Keys(settings, clock)

    def authenticate(self, text: str) -> Principal:
        """Say whom a token names, or raise AccessError: one constant, but for a good token that is too old."""
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
            return self._named(claims)
        except jwt.ExpiredSignatureError:
            raise AccessError("HB702", "this token has expired.", "Sign in at your identity provider again.") from None
        except (jwt.PyJWTError, *_UNREADABLE):
            raise _refused() from None

    def role(self, name: str) -> Role:
        """Give the role of a name."""
        if name in self._settings.owners:
            return "owner"
        return "auditor" if name in self._settings.auditors else "analyst"

    def _named(self, claims: dict[str, Any]) -> Principal:
        name = claims.get(self._settings.claim)
        if not isinstance(name, str) or not name:
            raise _refused()
        if self._settings.claim == "email" and claims.get("email_verified") is not True:
            raise _refused()  # or anybody could write somebody else's address
        return Principal(name, self.role(name), None, int(claims["exp"]))


def _document(client: httpx.Client, address: str) -> dict[str, Any]:
    """Fetch a JSON document of bounded size."""
    content = b""
    with client.stream("GET", address, headers={"Accept": "application/json"}) as response:
        response.raise_for_status()
        if response.is_redirect:
            raise ValueError("a redirect")
        for chunk in response.iter_bytes():
            content += chunk
            if len(content) > _LARGEST:
                raise ValueError("too long")
    found = json.loads(content)
    if not isinstance(found, dict):
        raise TypeError("no object")
    return found


def _signs(key: PyJWK) -> bool:
    return key.algorithm_name in ALGORITHMS and key.public_key_use in ("sig", None)


def _refused() -> AccessError:
    return AccessError(
        "HB704",
        "this token of the identity provider is not accepted.",
        "It must come from the issuer that hubbub.yaml names, be meant for this service, and be fresh.",
    )
