"""Keys that are rotated while servers run: nobody is signed out, and a leaked key is worth nothing."""

from pathlib import Path

import pytest

from hubbub.errors import AccessError, DeploymentError
from hubbub.server import keyring
from hubbub.server.accounts import SESSION_SECONDS, Accounts
from hubbub.server.keyring import Keyring, rotate
from hubbub.server.sessions import Sessions
from hubbub.server.state import State

OLD = b"a key from before any rotation, 32+"


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1_900_000_000

    def __call__(self) -> int:
        return self.now


class Server:
    """One server's sessions, with the keys of a file that others may share."""

    def __init__(self, path: Path, accounts: Accounts, clock: Clock) -> None:
        self.sessions = Sessions(Keyring(path.read_bytes(), path, clock), accounts)
        self._accounts = accounts

    def sign_in(self) -> str:
        """Start a session with a new token."""
        return self.sessions.sign(self._accounts.identify(self._accounts.issue("ana", "analyst", 30).text))

    def accepts(self, cookie: str) -> bool:
        try:
            self.sessions.open(cookie)
        except AccessError:
            return False
        return True


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "keys" / "server.key"
    file.parent.mkdir()
    file.write_bytes(OLD)
    return file


@pytest.fixture
def servers(tmp_path: Path, path: Path, clock: Clock) -> tuple[Server, Server]:
    """Two servers with one key file."""
    from hubbub.server.database import SqliteDatabase

    accounts = Accounts(State(SqliteDatabase(tmp_path / "server.db")), analysts=lambda: ["ana"], clock=clock)
    return Server(path, accounts, clock), Server(path, accounts, clock)


def test_a_session_outlives_a_rotation_and_ends_at_its_own_time(
    servers: tuple[Server, Server], path: Path, clock: Clock
) -> None:
    one, two = servers
    before = one.sign_in()
    form = one.sessions.csrf(before)
    rotate(path, clock=clock)
    after = two.sign_in()
    for server in servers:
        assert server.accepts(before)
        assert server.accepts(after)
        server.sessions.check(before, form)
    clock.now += SESSION_SECONDS - 1
    assert one.accepts(before)
    clock.now += 2
    assert not one.accepts(before)


def test_the_newest_key_signs(path: Path, clock: Clock) -> None:
    ring = Keyring(path.read_bytes(), path, clock)
    assert ring.accepted() == (OLD,)
    rotate(path, clock=clock)
    first, second = ring.accepted()
    assert second == OLD
    assert len(first) >= keyring.MIN_KEY
    rotate(path, clock=clock)
    assert ring.accepted()[1:] == (first, OLD)


def test_an_old_key_is_accepted_no_longer_than_a_session_lasts(path: Path, clock: Clock) -> None:
    ring = Keyring(path.read_bytes(), path, clock)
    rotate(path, clock=clock)
    clock.now += SESSION_SECONDS
    assert OLD in ring.accepted()
    clock.now += 1
    assert OLD not in ring.accepted(), "although it is still in the file"
    rotate(path, clock=clock)
    assert OLD not in path.read_bytes()


def test_a_leaked_key_is_accepted_no_more(servers: tuple[Server, Server], path: Path, clock: Clock) -> None:
    before = servers[0].sign_in()
    rotate(path, leaked=True, clock=clock)
    assert not any(server.accepts(before) for server in servers)
    assert OLD not in path.read_bytes()


def test_a_file_that_is_broken_or_gone_changes_nothing(path: Path, clock: Clock) -> None:
    ring = Keyring(path.read_bytes(), path, clock)
    for content in (b"hubbub keys 1\nnonsense\n", b"short", b"hubbub keys 1\n"):
        path.write_bytes(content)
        assert ring.accepted() == (OLD,)
    path.unlink()
    assert ring.accepted() == (OLD,)


@pytest.mark.parametrize("text", ["", "nonsense", "2026-11-19 " + "k" * 40, "- short", "- " + "k" * 40 + " more"])
def test_a_broken_list_is_refused(text: str) -> None:
    with pytest.raises(DeploymentError, match="HB890"):
        keyring.parse(f"hubbub keys 1\n{text}".encode())


def test_a_key_of_several_lines_is_still_one_key() -> None:
    """As base64 wraps it: the form of a list is told by its first line alone."""
    text = b"k" * 76 + b"\n" + b"k" * 8
    assert [key.secret for key in keyring.parse(text)] == [text]


def test_a_key_with_spaces_is_kept_through_a_rotation(path: Path, clock: Clock) -> None:
    assert b" " in OLD
    rotate(path, clock=clock)
    assert [key.secret for key in keyring.parse(path.read_bytes())][1] == OLD


def test_what_cannot_be_rotated_is_said(tmp_path: Path) -> None:
    with pytest.raises(DeploymentError, match="HB893"):
        rotate(tmp_path / "missing")


@pytest.mark.parametrize("line", [f"2026-99-19T21:00:00Z {'a' * 40}", f"- base64:{'a' * 33}", f"- base64:{'!' * 40}"])
def test_a_line_that_looks_right_and_is_not_keeps_the_keys(path: Path, clock: Clock, line: str) -> None:
    keys = Keyring(path.read_bytes(), path, clock)
    path.write_text(f"hubbub keys 1\n{line}\n")
    assert keys.accepted() == (OLD,)
    with pytest.raises(DeploymentError, match="HB890"):
        keyring.parse(path.read_bytes())
