"""Tokens, and every way in that must stay shut."""

import hmac
import re
import secrets
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.conftest import Clock

from hubbub.errors import AccessError, ParameterError
from hubbub.server.accounts import MAX_CREDENTIAL, MAX_DAYS, Accounts, Principal
from hubbub.server.database import SqliteDatabase
from hubbub.server.state import Role, State

DAY = 86_400


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    found = State(SqliteDatabase(tmp_path / "server.db"))
    yield found
    found.close()


@pytest.fixture
def names() -> set[str]:
    return {"ana", "ben"}


@pytest.fixture
def accounts(state: State, names: set[str], clock: Clock) -> Accounts:
    return Accounts(state, analysts=lambda: names, clock=clock)


def refused(accounts: Accounts, *headers: str | None, code: str = "HB701") -> None:
    with pytest.raises(AccessError) as error:
        accounts.authenticate(*headers)
    assert error.value.code == code
    for header in headers:
        assert header is None or len(header) < 10 or header not in str(error.value)


@pytest.mark.parametrize("role", ["owner", "analyst", "auditor"])
def test_a_token_says_who_asks(accounts: Accounts, clock: Clock, role: Role) -> None:
    issued = accounts.issue("ana", role, 30)
    assert accounts.authenticate(f"Bearer {issued.text}") == Principal(
        "ana", role, issued.token.id, clock.now + 30 * DAY
    )
    assert accounts.identify(issued.text).name == "ana"


def test_a_token_has_256_random_bits_and_its_secret_is_not_kept(accounts: Accounts, tmp_path: Path) -> None:
    texts = [accounts.issue("ana", "analyst", 1).text for _ in range(50)]
    assert len(set(texts)) == 50
    for text in texts:
        match = re.fullmatch(r"hub_([0-9a-f]{12})_([A-Za-z0-9_-]{43})", text)
        assert match
        token = accounts.state.tokens.find(match[1])
        assert token is not None
        assert token.digest == sha256(match[2].encode()).digest()
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert not [text for text in texts if text[17:].encode() in kept]


def test_without_a_header_a_token_is_asked_for(accounts: Accounts) -> None:
    refused(accounts, code="HB700")
    refused(accounts, None, code="HB700")


def test_a_header_given_twice_is_refused_even_if_both_are_good(accounts: Accounts) -> None:
    header = f"Bearer {accounts.issue('ana', 'analyst', 1).text}"
    refused(accounts, header, header)
    refused(accounts, header, "Bearer x")
    refused(accounts, "Bearer x", header)


def test_only_the_whole_token_opens(accounts: Accounts) -> None:
    """Every truncation, and every single character changed, is refused with the same words."""
    text = accounts.issue("ana", "analyst", 1).text
    for length in range(len(text)):
        refused(accounts, f"Bearer {text[:length]}")
    for place in range(len(text)):
        other = "0" if text[place] != "0" else "1"
        refused(accounts, f"Bearer {text[:place]}{other}{text[place + 1 :]}")
    for more in ("A", "=", "\n", "\0", ".", " x", ","):
        refused(accounts, f"Bearer {text}{more}")


def test_the_secret_of_one_token_does_not_open_another(accounts: Accounts) -> None:
    mine, owners = accounts.issue("ana", "analyst", 1), accounts.issue("olga", "owner", 1)
    refused(accounts, f"Bearer hub_{owners.token.id}_{mine.text[17:]}")


@pytest.mark.parametrize(
    "header",
    [
        "",
        " ",
        "Bearer",
        "Bearer ",
        "Basic b2xnYTp4",
        "hub_0123456789ab_x",
        "Bearer: x",
        "Digest username=olga",
        "Bearer null",
        "Bearer undefined",
        "Bearer *",
        "Bearer %",
        "Bearer ' OR 1=1 --",
        "Bearer hub__",
        "Bearer a.b.c",
        "Bearer hub_%_%",
        "Bearer hub_000000000000_" + "A" * 43,
        "Bearer hub_0123456789AB_" + "A" * 43,
        "Bearer " + "A" * MAX_CREDENTIAL,
        "Bearer " + "é" * 50,
        "Bearer hub_٠١٢٣٤٥٦٧٨٩ab_" + "A" * 43,
        "Bearer \ud800",
        "Bearer hub_0123456789ab_" + "A" * 42 + "é",
        "Bearer \x00",
        "Bearer\thub",
        "\u212aearer x",
    ],
)
def test_what_is_no_token_is_refused_in_one_constant(accounts: Accounts, header: str) -> None:
    refused(accounts, header)


@given(st.text(max_size=300))
def test_no_text_opens_or_breaks_anything(text: str) -> None:
    class Empty:
        class tokens:  # noqa: N801
            @staticmethod
            def find(id_: str) -> None:
                assert re.fullmatch("|[0-9a-f]{12}", id_)

    accounts = Accounts(Empty(), analysts=lambda: ["ana"])  # type: ignore[arg-type]
    for header in (text, f"Bearer {text}", f"bearer hub_{text}"):
        refused(accounts, header)


def test_guessing_the_secret_of_a_known_id_gets_nowhere(accounts: Accounts) -> None:
    id_ = accounts.issue("olga", "owner", 1).token.id
    for _ in range(500):
        refused(accounts, f"Bearer hub_{id_}_{secrets.token_urlsafe(32)}")


def test_an_unknown_id_and_a_wrong_secret_cost_the_same_work(
    accounts: Accounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both hash the secret once and compare two digests of 32 bytes in constant time."""
    done: list[tuple[str, int, int]] = []
    compare = hmac.compare_digest

    def watch(first: bytes, second: bytes) -> bool:
        done.append(("compare", len(first), len(second)))
        return compare(first, second)

    monkeypatch.setattr(hmac, "compare_digest", watch)
    id_ = accounts.issue("ana", "analyst", 1).token.id
    for text in (f"hub_{id_}_{'A' * 43}", f"hub_{'0' * 12}_{'A' * 43}", "nonsense"):
        refused(accounts, f"Bearer {text}")
    assert done == [("compare", 32, 32)] * 3


def test_an_expired_token_is_refused_from_the_second_it_expires(accounts: Accounts, clock: Clock) -> None:
    header = f"Bearer {accounts.issue('ana', 'analyst', 1).text}"
    clock.now += DAY - 1
    accounts.authenticate(header)
    clock.now += 1
    refused(accounts, header, code="HB702")


def test_a_revoked_token_is_refused_at_once_and_for_good(accounts: Accounts, clock: Clock) -> None:
    issued = accounts.issue("ana", "analyst", 1)
    header = f"Bearer {issued.text}"
    principal = accounts.authenticate(header)
    accounts.revoke(issued.token.id)
    refused(accounts, header, code="HB703")
    with pytest.raises(AccessError, match="HB703"):
        accounts.still(principal)
    clock.now -= DAY
    refused(accounts, header, code="HB703")


def test_who_only_guesses_does_not_hear_that_a_token_was_revoked_or_expired(accounts: Accounts, clock: Clock) -> None:
    issued = accounts.issue("ana", "analyst", 1)
    accounts.revoke(issued.token.id)
    clock.now += 2 * DAY
    refused(accounts, f"Bearer hub_{issued.token.id}_{'A' * 43}")


def test_an_analyst_who_was_removed_is_refused_though_the_token_is_good(accounts: Accounts, names: set[str]) -> None:
    header = f"Bearer {accounts.issue('ana', 'analyst', 1).text}"
    owner = f"Bearer {accounts.issue('ana', 'owner', 1).text}"
    principal = accounts.authenticate(header)
    names.remove("ana")
    refused(accounts, header, code="HB705")
    with pytest.raises(AccessError, match="HB705"):
        accounts.still(principal)
    assert accounts.authenticate(owner).role == "owner"


def test_a_principal_that_nobody_signed_in_as_is_not_let_in_again(accounts: Accounts, clock: Clock) -> None:
    token = accounts.issue("ana", "analyst", 1).token
    for name, role, id_ in (("ana", "owner", token.id), ("ben", "analyst", token.id), ("ana", "analyst", "0" * 12)):
        with pytest.raises(AccessError, match="HB701"):
            accounts.still(Principal(name, role, id_, clock.now + 10))  # type: ignore[arg-type]
    with pytest.raises(AccessError, match="HB701"):
        accounts.still(Principal("ana", "analyst", None, clock.now + 10))
    with pytest.raises(AccessError, match="HB702"):
        accounts.still(Principal("ana", "analyst", token.id, clock.now))


@pytest.mark.parametrize(
    ("name", "role", "days"),
    [
        ("zoe", "analyst", 1),
        ("ana", "admin", 1),
        ("ana", "", 1),
        ("", "owner", 1),
        ("a b", "owner", 1),
        ("a" * 101, "owner", 1),
        ("a\n", "owner", 1),
        ("<b>", "owner", 1),
        ("ana", "analyst", 0),
        ("ana", "analyst", -1),
        ("ana", "analyst", MAX_DAYS + 1),
        ("ana", "analyst", True),
        ("ana", "analyst", 10**30),
        ("ana", "analyst", float("nan")),
    ],
)
def test_tokens_that_should_not_be_are_not_made(accounts: Accounts, name: str, role: Role, days: int) -> None:
    with pytest.raises(ParameterError, match="HB144"):
        accounts.issue(name, role, days)
    assert accounts.state.tokens.list() == []


def test_the_day_of_the_last_use_is_kept_and_no_more(accounts: Accounts, clock: Clock) -> None:
    issued = accounts.issue("ana", "analyst", 30)
    for _ in range(3):
        accounts.identify(issued.text)
        clock.now += DAY
    assert accounts.state.tokens.list()[0].used == "2027-01-17"


def test_the_day_is_written_once_however_often_a_token_is_used(
    accounts: Accounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    issued = accounts.issue("ana", "analyst", 30)
    written: list[str] = []
    monkeypatch.setattr(accounts.state.tokens, "note_use", _noting(accounts.state.tokens.note_use, written))
    for _ in range(5):
        accounts.identify(issued.text)
    assert written == ["2027-01-15"]


def _noting(note: Callable[[str, str], None], written: list[str]) -> Callable[[str, str], None]:
    def watch(id_: str, day: str) -> None:
        written.append(day)
        note(id_, day)

    return watch


def test_who_is_shut_out_had_tokens_and_has_none_that_is_valid(accounts: Accounts, clock: Clock) -> None:
    assert accounts.shut_out() == frozenset()  # nobody needs a token
    first = accounts.issue("ana", "analyst", 1).token
    accounts.issue("boss", "owner", 1)
    second = accounts.issue("ana", "analyst", 5).token
    accounts.revoke(first.id)
    assert accounts.shut_out() == frozenset()
    accounts.revoke(second.id)
    assert accounts.shut_out() == {"ana"}
    accounts.issue("ana", "analyst", 1)
    assert accounts.shut_out() == frozenset()
    clock.now += 2 * 86_400
    assert accounts.shut_out() == {"ana"}  # the valid one has expired, and the others are revoked


def at_once(accounts: Accounts, *headers: str) -> Principal | None:
    return accounts.identify_at_once(*headers, analysts={"ana", "ben"})


def test_who_is_known_at_once_is_who_is_known_otherwise(accounts: Accounts) -> None:
    for name, role in (("ana", "analyst"), ("olga", "owner"), ("adam", "auditor")):
        header = f"Bearer {accounts.issue(name, role, 1).text}"  # type: ignore[arg-type]
        assert at_once(accounts, header) is None  # its first use of the day has to be written
        principal = accounts.authenticate(header)
        assert at_once(accounts, header) == principal


def test_nobody_is_known_at_once_whom_the_usual_way_refuses(accounts: Accounts, clock: Clock, names: set[str]) -> None:
    texts = [accounts.issue(name, "analyst", 2).text for name in ("ana", "ben", "ana")]
    good, ben, revoked = (f"Bearer {text}" for text in texts)
    for header in (good, ben, revoked):
        accounts.authenticate(header)
    accounts.revoke(texts[2][4:16])
    wrong = good[:-1] + ("A" if good[-1] != "A" else "B")
    crossed = f"Bearer {texts[1][:17]}{texts[0][17:]}"
    for headers in ((), ("",), (good, good), (good, "Bearer x"), (wrong,), (crossed,), (f"{good} ",), (revoked,)):
        assert at_once(accounts, *headers) is None
    names.discard("ben")
    assert accounts.identify_at_once(ben, analysts=names) is None
    assert accounts.identify_at_once(good, analysts=names) is not None
    clock.now += 2 * DAY  # it has expired
    accounts.state.tokens.note_use(texts[0][4:16], accounts._today())
    assert at_once(accounts, good) is None


def test_a_token_in_a_database_elsewhere_is_not_waited_for(accounts: Accounts, monkeypatch: pytest.MonkeyPatch) -> None:
    header = f"Bearer {accounts.issue('ana', 'analyst', 1).text}"
    accounts.authenticate(header)
    monkeypatch.setattr(SqliteDatabase, "is_local", False)
    assert at_once(accounts, header) is None
