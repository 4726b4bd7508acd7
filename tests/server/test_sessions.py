"""Sessions of the pages: no forged cookie, no cookie that outlives its token, no form from elsewhere."""

import base64
import hmac
import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from tests.server.conftest import Clock

from hubbub.errors import AccessError
from hubbub.server.accounts import SESSION_SECONDS, Accounts, Principal
from hubbub.server.database import SqliteDatabase
from hubbub.server.keyring import Keyring
from hubbub.server.oidc import Oidc
from hubbub.server.sessions import Sessions
from hubbub.server.settings import OidcSettings
from hubbub.server.state import State

SECRET = b"0123456789abcdef0123456789abcdef"
DAY = 86_400


@pytest.fixture
def names() -> set[str]:
    return {"ana"}


@pytest.fixture
def accounts(tmp_path: Path, clock: Clock, names: set[str]) -> Iterator[Accounts]:
    state = State(SqliteDatabase(tmp_path / "server.db"))
    yield Accounts(state, analysts=lambda: names, clock=clock)
    state.close()


@pytest.fixture
def sessions(accounts: Accounts) -> Sessions:
    return Sessions(Keyring(SECRET), accounts)


@pytest.fixture
def principal(accounts: Accounts) -> Principal:
    return accounts.identify(accounts.issue("ana", "analyst", 30).text)


def refused(sessions: Sessions, cookie: str | None, code: str = "HB702") -> None:
    with pytest.raises(AccessError) as error:
        sessions.open(cookie)
    assert error.value.code == code


def forge(key: bytes, content: object) -> str:
    body = base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()
    return f"{body}.{base64.urlsafe_b64encode(hmac.digest(key, body.encode(), sha256)).rstrip(b'=').decode()}"


def test_a_cookie_says_who_signed_in_and_ends_after_hours(
    sessions: Sessions, principal: Principal, clock: Clock
) -> None:
    cookie = sessions.sign(principal)
    assert sessions.open(cookie) == Principal("ana", "analyst", principal.token, clock.now + SESSION_SECONDS)
    clock.now += SESSION_SECONDS - 1
    sessions.open(cookie)
    clock.now += 1
    refused(sessions, cookie)


def test_a_cookie_does_not_hold_the_token(sessions: Sessions, accounts: Accounts) -> None:
    text = accounts.issue("ana", "analyst", 1).text
    cookie = sessions.sign(accounts.identify(text))
    assert text[17:] not in cookie
    assert text[17:].encode() not in base64.urlsafe_b64decode(cookie.partition(".")[0] + "===")


def test_no_session_outlives_its_token(sessions: Sessions, accounts: Accounts, clock: Clock) -> None:
    issued = accounts.issue("ana", "analyst", 1)
    principal = accounts.identify(issued.text)
    clock.now += DAY - 100
    cookie = sessions.sign(principal)
    assert sessions.open(cookie).expires == principal.expires
    clock.now += 100
    refused(sessions, cookie)


def test_a_session_of_an_identity_providers_token_ends_with_that_token(tmp_path: Path, clock: Clock) -> None:
    state = State(SqliteDatabase(tmp_path / "server.db"))
    oidc = Oidc(OidcSettings("https://issuer.example", "hubbub"))
    sessions = Sessions(Keyring(SECRET), Accounts(state, analysts=lambda: ["ana"], oidc=oidc, clock=clock))
    cookie = sessions.sign(Principal("ana", "analyst", None, clock.now + 100))
    clock.now += 99
    assert sessions.open(cookie).expires == clock.now + 1
    clock.now += 1
    refused(sessions, cookie)
    state.close()


def test_a_cookie_replayed_after_the_token_was_revoked_is_refused(
    sessions: Sessions, accounts: Accounts, principal: Principal
) -> None:
    cookie = sessions.sign(principal)
    accounts.revoke(principal.token or "")
    refused(sessions, cookie, "HB703")


def test_a_cookie_replayed_after_signing_out_is_refused_and_other_sessions_go_on(
    sessions: Sessions, principal: Principal
) -> None:
    first, second = sessions.sign(principal), sessions.sign(principal)
    assert first != second
    sessions.end(first)
    sessions.end(first)
    refused(sessions, first)
    assert sessions.open(second).name == "ana"


def test_a_cookie_of_an_analyst_who_was_removed_is_refused(
    sessions: Sessions, principal: Principal, names: set[str]
) -> None:
    cookie = sessions.sign(principal)
    names.clear()
    refused(sessions, cookie, "HB705")


def test_every_single_change_to_a_cookie_is_noticed(sessions: Sessions, principal: Principal) -> None:
    cookie = sessions.sign(principal)
    for place in range(len(cookie)):
        for other in "A", "B", ".", "_":
            changed = cookie[:place] + other + cookie[place + 1 :]
            if changed != cookie:
                refused(sessions, changed)
        refused(sessions, cookie[:place], "HB700" if place == 0 else "HB702")
    refused(sessions, cookie + "A")
    refused(sessions, cookie + ".")


def test_a_cookie_signed_with_another_secret_is_refused(
    sessions: Sessions, accounts: Accounts, principal: Principal, clock: Clock
) -> None:
    refused(sessions, Sessions(Keyring(b"another secret of 32 characters!"), accounts).sign(principal))
    owner = ["olga", "owner", None, clock.now + 1000, "0" * 32]
    for key in (b"", SECRET, hmac.digest(SECRET, b"hubbub form", sha256), sha256(SECRET).digest()):
        refused(sessions, forge(key, owner))
    # and the same content under the right key is taken: it is the key that keeps the others out
    refused(sessions, forge(hmac.digest(SECRET, b"hubbub session cookie", sha256), owner), "HB701")


def test_the_word_of_a_form_is_not_good_as_the_seal_of_a_cookie(sessions: Sessions, clock: Clock) -> None:
    body = (
        base64.urlsafe_b64encode(json.dumps(["olga", "owner", None, clock.now + 9, "0"]).encode()).decode().rstrip("=")
    )
    refused(sessions, f"{body}.{sessions.csrf(body)}")


@pytest.mark.parametrize("cookie", ["x", ".", "..", "é.é", "A" * 100_000, "\0", "W10.AAAA", "\ud800.x", "a.b.c", " "])
def test_what_is_no_cookie_is_refused(sessions: Sessions, cookie: str) -> None:
    refused(sessions, cookie)
    with pytest.raises(AccessError):
        sessions.check(cookie, sessions.csrf("x"))


def test_without_a_cookie_one_is_asked_to_sign_in(sessions: Sessions) -> None:
    refused(sessions, None, "HB700")
    refused(sessions, "", "HB700")
    refused(sessions, sessions.anonymous(), "HB700")


def test_a_form_of_the_session_is_accepted_and_others_are_not(sessions: Sessions, principal: Principal) -> None:
    mine, other = sessions.sign(principal), sessions.sign(principal)
    sessions.check(mine, sessions.csrf(mine))
    for given in (None, "", "x", sessions.csrf(other), sessions.csrf(mine)[:-1], sessions.csrf(mine) + "A", mine, "é"):
        with pytest.raises(AccessError) as error:
            sessions.check(mine, given)
        assert error.value.code == "HB711"
    with pytest.raises(AccessError, match="HB711"):
        sessions.check(None, sessions.csrf(mine))


def test_a_form_whose_cookie_was_planted_by_somebody_else_is_refused(sessions: Sessions) -> None:
    """A cookie tossed in from a neighboring site, with a word that fits it by chance of nothing: not one of ours."""
    with pytest.raises(AccessError, match="HB702"):
        sessions.check("planted", sessions.csrf("planted"))


def test_the_form_to_sign_in_is_protected_too(sessions: Sessions) -> None:
    mine, other = sessions.anonymous(), sessions.anonymous()
    sessions.check(mine, sessions.csrf(mine))
    with pytest.raises(AccessError, match="HB711"):
        sessions.check(mine, sessions.csrf(other))


def test_the_word_of_the_form_does_not_carry_over_signing_in(sessions: Sessions, principal: Principal) -> None:
    before = sessions.anonymous()
    with pytest.raises(AccessError, match="HB711"):
        sessions.check(sessions.sign(principal), sessions.csrf(before))


def test_over_https_the_cookie_insists_on_it(sessions: Sessions, accounts: Accounts) -> None:
    assert sessions.cookie == "hubbub"
    assert Sessions(Keyring(SECRET), accounts, secure=True).cookie == "__Host-hubbub"
