"""Sessions of the pages: a signed cookie identifies the user, and every form carries a CSRF token.

The cookie holds the token's id, never the token. It is checked against the stored tokens at each use, so a revoked or
expired token ends its sessions. The CSRF token is a keyed hash of the cookie: it cannot be computed without the cookie
and does not fit another session.
"""

import base64
import hmac
import json
import secrets
from hashlib import sha256
from typing import cast

from hubbub.errors import AccessError
from hubbub.server.accounts import SESSION_SECONDS, Accounts, Principal
from hubbub.server.keyring import Keyring
from hubbub.server.state import ROLES

_MAX_COOKIE = 2048
#: What a key is used for: derived keys of different uses have nothing to do with each other.
_COOKIE, _FORM = b"hubbub session cookie", b"hubbub form"


class Sessions:
    """Creates, checks, and ends sessions. Safe to use from many threads."""

    def __init__(self, keys: Keyring, accounts: Accounts, *, secure: bool = False) -> None:
        """Sign with keys derived from the newest one; `secure` means that browsers connect over HTTPS."""
        self._accounts = accounts
        self._keys = keys
        #: With the __Host- prefix, browsers require HTTPS and limit the cookie to this host.
        self.cookie = "__Host-hubbub" if secure else "hubbub"
        self.secure = secure

    def sign(self, principal: Principal) -> str:
        """Start a session and return its cookie."""
        if principal.role == "feeder":
            raise AccessError(
                "HB710", "A feeder token cannot sign in to the pages.", "Use it to feed streams over the HTTP API."
            )
        until = min(principal.expires, self._accounts.clock() + SESSION_SECONDS)
        return self._seal([principal.name, principal.role, principal.token, until, secrets.token_hex(16)])

    def anonymous(self) -> str:
        """Return a cookie for a visitor who is not signed in, so that the sign-in form has a CSRF token too."""
        return self._seal(["", "", None, self._accounts.clock() + SESSION_SECONDS, secrets.token_hex(16)])

    def open(self, cookie: str | None) -> Principal:
        """Return the principal of a session, or raise AccessError (HB70x) if there is none or it has ended."""
        name, role, token, until, session = self._unseal(cookie)
        if not name:
            raise AccessError("HB700", "You are not signed in.", "Sign in with your token.")
        # a session of an identity provider has no token to revoke, so look up the name
        gone = token is None and role == "analyst" and self._accounts.withdrawn(name)
        if gone or self._accounts.state.ended.has(session):
            raise AccessError("HB702", "This session has ended.", "Sign in again.")
        principal = self._accounts.still(Principal(name, role, token, until))  # type: ignore[arg-type]
        return Principal(principal.name, principal.role, principal.token, min(until, principal.expires))

    def end(self, cookie: str | None) -> None:
        """End a session; copies of its cookie become invalid."""
        name, _, _, until, session = self._unseal(cookie)
        if name:
            self._accounts.state.ended.add(session, until, self._accounts.clock())

    def csrf(self, cookie: str) -> str:
        """Return the CSRF token of a session."""
        return _seal_of(self._keys.accepted()[0], _FORM, cookie)

    def check(self, cookie: str | None, given: str | None) -> None:
        """Reject a form without the CSRF token of its session (HB711)."""
        valid = cookie is not None and given is not None and cookie.isascii() and given.isascii()
        if valid:
            self._unseal(cookie)
            valid = self._sealed(_FORM, cookie or "", given or "")
        if not valid:
            raise AccessError(
                "HB711",
                "This form was not sent from a page of your session.",
                "Reload the page and send the form again.",
            )

    def _seal(self, content: list[str | int | None]) -> str:
        body = _text(json.dumps(content, separators=(",", ":")).encode())
        return f"{body}.{_seal_of(self._keys.accepted()[0], _COOKIE, body)}"

    def _sealed(self, use: bytes, text: str, seal: str) -> bool:
        """Check a seal with every key that is accepted now."""
        seals = [_seal_of(key, use, text) for key in self._keys.accepted()]
        return any(hmac.compare_digest(each.encode(), seal.encode()) for each in seals)

    def _unseal(self, cookie: str | None) -> tuple[str, str, str | None, int, str]:
        if not cookie:
            raise AccessError("HB700", "You are not signed in.", "Sign in with your token.")
        body, _, seal = cookie.partition(".")
        if len(cookie) <= _MAX_COOKIE and cookie.isascii() and self._sealed(_COOKIE, body, seal):
            name, role, token, until, session = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
            if until > self._accounts.clock() and (role in ROLES or not name):
                return cast("tuple[str, str, str | None, int, str]", (name, role, token, until, session))
        raise AccessError("HB702", "This session has ended.", "Sign in again.")


def _seal_of(key: bytes, use: bytes, text: str) -> str:
    return _text(hmac.digest(hmac.digest(key, use, sha256), text.encode(), sha256))


def _text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
