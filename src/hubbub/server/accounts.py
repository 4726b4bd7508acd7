"""Accounts: who asks, by a token of ours or by one of an identity provider; never by a name that the client chooses.

A token is `hub_<id>_<secret>`. The secret has 256 random bits and is shown once; its SHA-256 is kept. A slow hash would
add nothing: nobody can try 2²⁵⁶ secrets. Whoever does not know the secret hears one constant, whatever the reason;
whoever knows it hears that it has expired or was revoked.
"""

import hmac
import re
import secrets
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import NamedTuple, Protocol

from hubbub.errors import AccessError, ParameterError
from hubbub.server.state import ROLES, Role, State, Token

MOST_DAYS = 3650
#: No credential is longer; what is longer is not even looked at.
LONGEST = 8192

#: A session of the pages ends after so many seconds, whatever the token says.
LASTS = 12 * 3600

_TEXT = re.compile(r"hub_([0-9a-f]{12})_([A-Za-z0-9_-]{43})", re.ASCII)
_NAME = re.compile(r"[\w.@+-]{1,100}")
_STREAM = re.compile(r"[\w.@+-]{1,100}/[a-z0-9][a-z0-9_-]{0,62}")
#: Stands for the hash of a token that does not exist, so that looking for it costs the same work.
_NOBODY = sha256(b"nobody").digest()


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks. `token` is the id of the token, None with an identity provider; `expires` is when to ask again."""

    name: str
    role: Role
    token: str | None
    expires: int


class Issued(NamedTuple):
    """A new token: what is kept of it, and the text that is shown this once."""

    token: Token
    text: str


class Provider(Protocol):
    """An identity provider: see `oidc`."""

    def authenticate(self, text: str) -> Principal:
        """Say whom a bearer token names, or raise AccessError."""
        ...

    def role(self, name: str) -> Role:
        """Give the role of a name, analyst where nothing else is said."""
        ...


def seconds() -> int:
    """Read the wall clock in seconds."""
    return int(time.time())


class Accounts:
    """Says who asks. Safe to use from many threads."""

    def __init__(
        self,
        state: State,
        *,
        analysts: Callable[[], Collection[str]],
        oidc: Provider | None = None,
        clock: Callable[[], int] = seconds,
    ) -> None:
        """Take tokens from `state`; `analysts` gives the names in hubbub.yaml as it is now."""
        self.state = state
        self.clock = clock
        self._analysts = analysts
        self._oidc = oidc

    def authenticate(self, *authorization: str | None) -> Principal:
        """Say who asks, from every Authorization header of a request; or raise AccessError (HB70x)."""
        headers = [header for header in authorization if header is not None]
        if not headers:
            raise AccessError(
                "HB700", "this needs a token.", "Send the header `Authorization: Bearer hub_…`; the owner gives tokens."
            )
        if len(headers) > 1 or len(headers[0]) > LONGEST or not headers[0].isascii():
            raise _unknown()  # of two headers nobody can say which one a proxy looked at
        scheme, _, text = headers[0].partition(" ")
        if scheme.lower() != "bearer":
            raise _unknown()
        return self.identify(text.strip(" "))

    def identify(self, text: str) -> Principal:
        """Say whose token this is, or raise AccessError (HB70x)."""
        if len(text) > LONGEST or not text.isascii():
            raise _unknown()
        if self._oidc is not None and text.count(".") == 2:
            return self._listed(self._oidc.authenticate(text))
        match = _TEXT.fullmatch(text)
        id_, secret = match.groups() if match else ("", text)
        token = self.state.tokens.find(id_)
        given = sha256(secret.encode()).digest()
        known = hmac.compare_digest(given, _NOBODY if token is None else token.digest)
        if token is None or not known:
            raise _unknown()
        principal = self._listed(self._current(token))
        day = datetime.fromtimestamp(self.clock(), UTC).date().isoformat()
        if token.used is None or token.used < day:
            self.state.tokens.note_use(token.id, day)
        return principal

    def still(self, principal: Principal) -> Principal:
        """Check that somebody who signed in before may come in still, or raise AccessError (HB70x)."""
        if principal.expires <= self.clock():
            raise AccessError("HB702", "this session has ended.", "Sign in again.")
        if principal.token is None:
            if self._oidc is None or self._oidc.role(principal.name) != principal.role:
                raise _unknown()
            return self._listed(principal)
        token = self.state.tokens.find(principal.token)
        if token is None or (token.name, token.role) != (principal.name, principal.role):
            raise _unknown()
        return self._listed(self._current(token))

    def issue(self, name: str, role: Role, days: int, streams: Collection[str] = ()) -> Issued:
        """Make a token. Its text is not kept: who loses it gets a new one.

        A feeder's token names the streams that it may feed, each as analyst/stream; it can do nothing else.
        """
        if role not in ROLES:
            raise ParameterError("HB144", "a role is owner, analyst, auditor or feeder.", "Write one of these.")
        if (role == "feeder") != bool(streams) or not all(_STREAM.fullmatch(each) for each in streams):
            raise ParameterError(
                "HB144",
                "a feeder's token names the streams that it may feed, and no other token does.",
                "Write each as analyst/stream, such as ana/visits.",
            )
        if not _NAME.fullmatch(name):
            raise ParameterError(
                "HB144", "this is not a name.", "A name has 1 to 100 letters, digits or any of . _ @ + - and no spaces."
            )
        if role == "analyst" and name not in self._analysts():
            raise ParameterError("HB144", f"hubbub.yaml has no analyst {name}.", "Add the analyst first.")
        if isinstance(days, bool) or not 1 <= days <= MOST_DAYS:
            raise ParameterError("HB144", f"a token lasts 1 to {MOST_DAYS} days.", "Choose a number in that range.")
        id_, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        now = self.clock()
        token = Token(id_, name, role, sha256(secret.encode()).digest(), now, now + days * 86_400)
        self.state.tokens.add(token)
        for each in streams:
            analyst, _, stream = each.partition("/")
            self.state.feeds.add(id_, analyst, stream)
        return Issued(token, f"hub_{id_}_{secret}")

    def revoke(self, id_: str) -> None:
        """Close a token for good, and every session that began with it."""
        self.state.tokens.revoke(id_, self.clock())

    def withdraw(self, gone: Collection[str] = ()) -> None:
        """Close for good the tokens of everybody whom hubbub.yaml does not name, and the sessions of who is `gone` now.

        A name that comes back later finds nothing of this alive: not the tokens, and not the sessions, whether they
        began with a token or with an identity provider.
        """
        now, named = self.clock(), set(self._analysts()) - set(gone)
        for name in gone:
            self.state.ended.add(_sessions_of(name), now + LASTS, now)
        for name in self.state.tokens.holders() - named:
            self.state.tokens.revoke_all(name, "analyst", now)

    def returned(self, name: str, absent: int) -> None:
        """Close what somebody had who was removed until then (seconds since 1970), while no server was looking."""
        for token in self.state.tokens.list(name):
            if token.role == "analyst" and token.created <= absent and token.revoked is None:
                self.state.tokens.revoke(token.id, self.clock())
        if absent + LASTS >= self.clock():
            self.state.ended.add(_sessions_of(name), absent + LASTS, self.clock())

    def withdrawn(self, name: str) -> bool:
        """Say whether an analyst was removed so lately that a session from before could still be there."""
        return self.state.ended.has(_sessions_of(name), self.clock())

    def _current(self, token: Token) -> Principal:
        if token.revoked is not None:
            raise AccessError("HB703", "this token was revoked.", "Ask the owner for a new one.")
        if token.expires <= self.clock():
            raise AccessError("HB702", "this token has expired.", "Ask the owner for a new one.")
        return Principal(token.name, token.role, token.id, token.expires)

    def _listed(self, principal: Principal) -> Principal:
        if principal.role == "analyst" and principal.name not in self._analysts():
            raise AccessError(
                "HB705", "you are not an analyst here.", "Ask the owner to add you to hubbub.yaml, under analysts."
            )
        return principal


def _sessions_of(name: str) -> str:
    """Give what stands in the list of ended sessions for all those of one analyst."""
    return f"analyst {name}"


def _unknown() -> AccessError:
    return AccessError("HB701", "this token is not valid.", "Check that all of it was copied, or ask for a new one.")
