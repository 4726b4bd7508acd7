"""Authentication by our own tokens or by those of an identity provider.

A token is `hub_<id>_<secret>`. The secret has 256 random bits and is shown once; only its SHA-256 is stored. A slow
hash would add nothing against 2²⁵⁶ candidates. PostgreSQL clients prove that they know a token without sending it;
what such a proof is checked with is stored as well (`scram`). Without the right secret, every failure gives the same
error; with it, the error says whether the token has expired or was revoked.
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
from hubbub.server import scram
from hubbub.server.state import ROLES, Role, State, TokenRecord

MAX_DAYS = 3650
#: Maximum length of a credential; longer ones are rejected unread.
MAX_CREDENTIAL = 8192

#: Maximum lifetime of a session of the pages, in seconds.
SESSION_SECONDS = 12 * 3600

_TEXT = re.compile(r"hub_([0-9a-f]{12})_([A-Za-z0-9_-]{43})", re.ASCII)
#: What clients send in the header Authorization, in its usual form.
_BEARER = re.compile(rf"Bearer {_TEXT.pattern}", re.ASCII)
_NAME = re.compile(r"[\w.@+-]{1,100}")
_STREAM = re.compile(r"[\w.@+-]{1,100}/[a-z0-9][a-z0-9_-]{0,62}")
#: Compared in place of the hash of an unknown token, so that both cases do the same work.
_NOBODY = sha256(b"nobody").digest()
_NO_VERIFIER = 2 * _NOBODY


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller. `token` is the token id, or None with an identity provider."""

    name: str
    role: Role
    token: str | None
    expires: int


class IssuedToken(NamedTuple):
    """A new token: its stored record, and its text, which is shown only once."""

    token: TokenRecord
    text: str


class IdentityProvider(Protocol):
    """An identity provider; see `oidc`."""

    def authenticate(self, text: str) -> Principal:
        """Return the principal of a bearer token, or raise AccessError."""
        ...

    def role(self, name: str) -> Role:
        """Return the role of a name; analyst by default."""
        ...


def seconds() -> int:
    """Return the time in seconds since 1970."""
    return int(time.time())


class Accounts:
    """Authenticates callers and manages their tokens. Safe to use from many threads."""

    def __init__(
        self,
        state: State,
        *,
        analysts: Callable[[], Collection[str]],
        oidc: IdentityProvider | None = None,
        clock: Callable[[], int] = seconds,
    ) -> None:
        """Read tokens from `state`; `analysts` returns the current names in hubbub.yaml."""
        self.state = state
        self.clock = clock
        self._analysts = analysts
        self._oidc = oidc

    def authenticate(self, *authorization: str | None) -> Principal:
        """Return the principal, given all Authorization headers of a request, or raise AccessError (HB70x)."""
        headers = [header for header in authorization if header is not None]
        if not headers:
            raise AccessError(
                "HB700",
                "A token is required.",
                "Send the header `Authorization: Bearer hub_…`; the data owner issues tokens.",
            )
        if len(headers) > 1 or len(headers[0]) > MAX_CREDENTIAL or not headers[0].isascii():
            raise _unknown()  # with two headers, a proxy may have checked the other one
        scheme, _, text = headers[0].partition(" ")
        if scheme.lower() != "bearer":
            raise _unknown()
        return self.identify(text.strip(" "))

    def identify(self, text: str) -> Principal:
        """Return the principal of a token, or raise AccessError (HB70x)."""
        if len(text) > MAX_CREDENTIAL or not text.isascii():
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
        if token.verifier is None:  # a token that an earlier version made
            self.state.tokens.note_verifier(token.id, scram.verifier(text))
        self._note_use(token)
        return principal

    def identify_at_once(self, *authorization: str, analysts: Collection[str]) -> Principal | None:
        """Return the principal that `authenticate` would return, if that takes no wait and no change; otherwise None.

        This is for an event loop, and for the usual case alone: a valid token of our own that was used today, looked up
        in a file of this machine. `analysts` are the names in hubbub.yaml as it is now. Nothing is refused here.
        """
        match = _BEARER.fullmatch(authorization[0]) if len(authorization) == 1 else None
        if match is None or not self.state.tokens.is_local:
            return None
        token = self.state.tokens.find(match[1])
        given = sha256(match[2].encode()).digest()
        known = hmac.compare_digest(given, _NOBODY if token is None else token.digest)
        if token is None or not known or token.verifier is None or token.used != self._today():
            return None
        current = token.revoked is None and token.expires > self.clock()
        if not current or (token.role == "analyst" and token.name not in analysts):
            return None
        return Principal(token.name, token.role, token.id, token.expires)

    def _today(self) -> str:
        return datetime.fromtimestamp(self.clock(), UTC).date().isoformat()

    def prove(self, name: str, proof: scram.Proof) -> tuple[Principal, bytes]:
        """Return the principal whose token gave this proof of SCRAM, and the server's own proof, or raise AccessError.

        All tokens have the same salt, so that one proof can be checked against all tokens of a name.
        """
        tokens = self.state.tokens.list(name)
        if not tokens:
            scram.check(_NO_VERIFIER, proof)  # the same work as for a name that exists
        for token in tokens:
            if token.verifier is not None and (answer := scram.check(token.verifier, proof)) is not None:
                principal = self._listed(self._current(token))
                self._note_use(token)
                return principal, answer
        raise _unknown()

    def _note_use(self, token: TokenRecord) -> None:
        day = self._today()
        if token.used is None or token.used < day:
            self.state.tokens.note_use(token.id, day)

    def still(self, principal: Principal) -> Principal:
        """Check that a principal who signed in earlier still has access, or raise AccessError (HB70x)."""
        if principal.expires <= self.clock():
            raise AccessError("HB702", "This session has ended.", "Sign in again.")
        if principal.token is None:
            if self._oidc is None or self._oidc.role(principal.name) != principal.role:
                raise _unknown()
            return self._listed(principal)
        token = self.state.tokens.find(principal.token)
        if token is None or (token.name, token.role) != (principal.name, principal.role):
            raise _unknown()
        return self._listed(self._current(token))

    def issue(self, name: str, role: Role, days: int, streams: Collection[str] = ()) -> IssuedToken:
        """Create a token. Its text is not stored; a lost token must be replaced.

        A feeder token names the streams it may feed, each as analyst/stream; it can do nothing else.
        """
        if role not in ROLES:
            raise ParameterError("HB144", "Unknown role.", "Use one of: owner, analyst, auditor, steward, feeder.")
        if (role == "feeder") != bool(streams) or not all(_STREAM.fullmatch(each) for each in streams):
            raise ParameterError(
                "HB144",
                "Streams are required for a feeder token and not allowed for other tokens.",
                "Write each stream as analyst/stream, for example ana/visits.",
            )
        if not _NAME.fullmatch(name):
            raise ParameterError(
                "HB144", "Invalid name.", "Use 1 to 100 letters, digits, or the characters . _ @ + - without spaces."
            )
        if role == "analyst" and name not in self._analysts():
            raise ParameterError("HB144", f"hubbub.yaml has no analyst named {name}.", "Add the analyst first.")
        if isinstance(days, bool) or not 1 <= days <= MAX_DAYS:
            raise ParameterError(
                "HB144", f"The token lifetime must be 1 to {MAX_DAYS} days.", "Choose a number in that range."
            )
        id_, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        now = self.clock()
        text = f"hub_{id_}_{secret}"
        digest, verifier = sha256(secret.encode()).digest(), scram.verifier(text)
        token = TokenRecord(id_, name, role, digest, now, now + days * 86_400, verifier=verifier)
        self.state.tokens.add(token)
        for name_pair in streams:
            analyst, _, stream = name_pair.partition("/")
            self.state.feeds.add(id_, analyst, stream)
        return IssuedToken(token, text)

    def revoke(self, id_: str) -> None:
        """Revoke a token permanently, with every session that started from it."""
        self.state.tokens.revoke(id_, self.clock())

    def shut_out(self) -> frozenset[str]:
        """Return the analysts whose tokens were revoked and who have no valid one: their scheduled queries pause.

        Nobody has to have a token: an owner may schedule queries for somebody who never had one. With an identity
        provider nobody is shut out by their tokens.
        """
        return frozenset() if self._oidc is not None else frozenset(self.state.tokens.shut_out(self.clock()))

    def withdraw(self, gone: Collection[str] = ()) -> None:
        """Revoke the tokens of everyone missing from hubbub.yaml, and end the sessions of those in `gone`.

        If a name is added again later, its old tokens and sessions stay invalid, including sessions that started
        with an identity provider.
        """
        now, named = self.clock(), set(self._analysts()) - set(gone)
        for name in gone:
            self.state.ended.add(_sessions_of(name), now + SESSION_SECONDS, now)
        for name in self.state.tokens.holders() - named:
            self.state.tokens.revoke_all(name, "analyst", now)

    def returned(self, name: str, absent: int) -> None:
        """Revoke old access of an analyst who was removed until `absent` (seconds since 1970) and then added again."""
        for token in self.state.tokens.list(name):
            if token.role == "analyst" and token.created <= absent and token.revoked is None:
                self.state.tokens.revoke(token.id, self.clock())
        if absent + SESSION_SECONDS >= self.clock():
            self.state.ended.add(_sessions_of(name), absent + SESSION_SECONDS, self.clock())

    def withdrawn(self, name: str) -> bool:
        """Return whether an analyst was removed so recently that an old session cookie may still exist."""
        return self.state.ended.has(_sessions_of(name), self.clock())

    def _current(self, token: TokenRecord) -> Principal:
        if token.revoked is not None:
            raise AccessError("HB703", "This token was revoked.", "Ask the data owner for a new one.")
        if token.expires <= self.clock():
            raise AccessError("HB702", "This token has expired.", "Ask the data owner for a new one.")
        return Principal(token.name, token.role, token.id, token.expires)

    def _listed(self, principal: Principal) -> Principal:
        if principal.role == "analyst" and principal.name not in self._analysts():
            raise AccessError(
                "HB705",
                "You are not listed as an analyst.",
                "Ask the data owner to add you under `analysts:` in hubbub.yaml.",
            )
        return principal


def _sessions_of(name: str) -> str:
    """Return the entry in the list of ended sessions that covers all sessions of one analyst."""
    return f"analyst {name}"


def _unknown() -> AccessError:
    return AccessError(
        "HB701", "This token is not valid.", "Check that you copied all of it, or ask the data owner for a new one."
    )
