"""Sessions of the pages: a signed cookie says who signed in, and each form carries a word that only our pages know.

The cookie holds the token's id, never the token; it is checked against the tokens at each use, so a revoked or expired
token ends its sessions. The word against forged forms is a keyed hash of the cookie: who cannot read the cookie cannot
make it, and that of another session does not fit.
"""

import base64
import hmac
import json
import secrets
from hashlib import sha256
from typing import cast

from hubbub.errors import AccessError
from hubbub.server.accounts import LASTS, Accounts, Principal
from hubbub.server.state import ROLES

_LONGEST = 2048


class Sessions:
    """Signs people in, and says who they are. Safe to use from many threads."""

    def __init__(self, secret: bytes, accounts: Accounts, *, secure: bool = False) -> None:
        """Sign with keys that are made from `secret`; `secure` says that browsers come by https."""
        self._accounts = accounts
        self._cookie_key = hmac.digest(secret, b"hubbub session cookie", sha256)
        self._form_key = hmac.digest(secret, b"hubbub form", sha256)
        #: With this prefix a browser insists on https, on this host alone.
        self.cookie = "__Host-hubbub" if secure else "hubbub"
        self.secure = secure

    def sign(self, principal: Principal) -> str:
        """Begin a session, and give the text of its cookie."""
        if principal.role == "feeder":
            raise AccessError("HB710", "a feeder's token opens no page.", "Use it to feed streams over HTTP.")
        until = min(principal.expires, self._accounts.clock() + LASTS)
        return self._seal([principal.name, principal.role, principal.token, until, secrets.token_hex(16)])

    def stranger(self) -> str:
        """Give a cookie for somebody who has not signed in yet, so that the form to sign in can be protected too."""
        return self._seal(["", "", None, self._accounts.clock() + LASTS, secrets.token_hex(16)])

    def open(self, cookie: str | None) -> Principal:
        """Say who signed in; or raise AccessError (HB70x) where nobody did, or may not be in any longer."""
        name, role, token, until, session = self._unseal(cookie)
        if not name:
            raise AccessError("HB700", "you have not signed in.", "Sign in with your token.")
        # a session of an identity provider has no token that could be revoked: the name is looked up instead
        gone = token is None and role == "analyst" and self._accounts.withdrawn(name)
        if gone or self._accounts.state.ended.has(session):
            raise AccessError("HB702", "this session has ended.", "Sign in again.")
        principal = self._accounts.still(Principal(name, role, token, until))  # type: ignore[arg-type]
        return Principal(principal.name, principal.role, principal.token, min(until, principal.expires))

    def end(self, cookie: str | None) -> None:
        """End a session: its cookie is of no use afterwards, whoever kept a copy."""
        name, _, _, until, session = self._unseal(cookie)
        if name:
            self._accounts.state.ended.add(session, until, self._accounts.clock())

    def csrf(self, cookie: str) -> str:
        """Give the word that a form of this session carries."""
        return _text(hmac.digest(self._form_key, cookie.encode(), sha256))

    def check(self, cookie: str | None, given: str | None) -> None:
        """Refuse a form that does not carry its session's word (HB711)."""
        good = cookie is not None and given is not None and cookie.isascii() and given.isascii()
        if good:
            self._unseal(cookie)
            good = hmac.compare_digest(self.csrf(cookie or "").encode(), (given or "").encode())
        if not good:
            raise AccessError(
                "HB711", "this form did not come from a page of this session.", "Load the page again, then send it."
            )

    def _seal(self, content: list[str | int | None]) -> str:
        body = _text(json.dumps(content, separators=(",", ":")).encode())
        return f"{body}.{_text(hmac.digest(self._cookie_key, body.encode(), sha256))}"

    def _unseal(self, cookie: str | None) -> tuple[str, str, str | None, int, str]:
        if not cookie:
            raise AccessError("HB700", "you have not signed in.", "Sign in with your token.")
        body, _, seal = cookie.partition(".")
        if len(cookie) <= _LONGEST and cookie.isascii():
            made = _text(hmac.digest(self._cookie_key, body.encode(), sha256))
            if hmac.compare_digest(made.encode(), seal.encode()):
                name, role, token, until, session = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
                if until > self._accounts.clock() and (role in ROLES or not name):
                    return cast("tuple[str, str, str | None, int, str]", (name, role, token, until, session))
        raise AccessError("HB702", "this session has ended.", "Sign in again.")


def _text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
