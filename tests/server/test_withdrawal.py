"""An analyst who was removed: tokens and sessions end for good, however the name left hubbub.yaml and came back."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.page_visits import Visitor
from tests.server.conftest import Clock, lay_out, opened

from hubbub.config import load
from hubbub.curator.opening import open_curator
from hubbub.errors import AccessError, HubbubError
from hubbub.server.accounts import SESSION_SECONDS, Accounts, Principal
from hubbub.server.database import SqliteDatabase
from hubbub.server.keyring import Keyring
from hubbub.server.oidc import Oidc
from hubbub.server.service import Service
from hubbub.server.sessions import Sessions
from hubbub.server.settings import OidcSettings
from hubbub.server.state import State

ANA = "  ana: {health: {epsilon: 10}}\n"


def rewritten(app: Any, text: str) -> None:
    """Edit the file by hand, and have the service look at it."""
    (app.folder / "hubbub.yaml").write_text(text)
    app.service.current._checked = float("-inf")


def status(app: Any, who: str = "ana") -> tuple[int, str | None]:
    answer = app.client(who).get("/api/v1/me")
    return answer.status_code, answer.json().get("code")


def test_an_edit_of_the_file_revokes_tokens_and_adding_the_name_revives_nothing(app: Any, visitor: Visitor) -> None:
    page = visitor("ana")
    assert page.get("/").status_code == 200
    text = (app.folder / "hubbub.yaml").read_text()
    release = app.ask().json()
    rewritten(app, text.replace(ANA, ""))
    assert status(app) == (403, "HB705"), "the request that sees the change"
    assert status(app) == (401, "HB703")
    assert all(token.revoked for token in app.service.state.tokens.list("ana"))
    rewritten(app, text)
    assert status(app, "ben") == (200, None), "whoever comes has the file looked at"
    assert status(app) == (401, "HB703")
    assert app.service.current.trouble is not None
    assert app.service.current.trouble.code == "HB434"
    rewritten(app, text + "returning: [ana]\n")
    assert status(app, "ben") == (200, None)
    assert status(app) == (401, "HB703")
    assert app.service.current.trouble is None
    assert page.get("/", follow_redirects=False).status_code in (302, 303, 401)
    # a new token is the same person's, by the owner's word: what was paid for is there
    app.tokens["ana"] = app.service.accounts.issue("ana", "analyst", 1).text
    assert status(app) == (200, None)
    numbers = [each["id"] for each in app.client("ana").get("/api/v1/releases").json()["releases"]]
    assert numbers == [release["receipt"]["ledger"][0]["sequence"]]
    assert status(app, "ben") == (200, None)


def test_a_removal_while_no_server_runs_revokes_at_the_next_start(tmp_path: Path) -> None:
    path = lay_out(tmp_path)
    text = path.read_text()
    service, tokens = opened(tmp_path)
    service.close()
    path.write_text(text.replace(ANA, ""))
    open_curator(load(path)).close()  # as a command does
    path.write_text(text + "returning: [ana]\n")
    service = Service(path, service.settings)
    try:
        with pytest.raises(AccessError, match="HB703"):
            service.accounts.identify(tokens["ana"])
        assert service.accounts.identify(tokens["ben"]).name == "ben"
        assert service.accounts.withdrawn("ana")
        time.sleep(1.1)  # tokens are made by the second
        issued = service.accounts.issue("ana", "analyst", 1).text
    finally:
        service.close()
    service = Service(path, service.settings)
    try:
        assert service.accounts.identify(issued).name == "ana", "a token from after the return stays good"
    finally:
        service.close()


def test_a_server_that_starts_without_a_name_revokes_it(tmp_path: Path) -> None:
    path = lay_out(tmp_path)
    service, _ = opened(tmp_path)
    service.close()
    path.write_text(path.read_text().replace(ANA, ""))
    service = Service(path, service.settings)
    try:
        held = {token.name: token.revoked is None for token in service.state.tokens.list()}
        assert held == {"owner": True, "auditor": True, "steward": True, "ana": False, "ben": True, "eve": True}
    finally:
        service.close()


def test_a_removal_that_cannot_be_written_down_is_tried_again(app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (app.folder / "hubbub.yaml").read_text()

    def down(*_: object) -> None:
        raise HubbubError("HB303", "busy.", "Wait.")

    with monkeypatch.context() as patch:
        patch.setattr(app.service.current, "withdraw", down)
        rewritten(app, text.replace(ANA, ""))
        assert status(app) == (200, None), "the old file is in force"
    app.service.current._checked = float("-inf")
    assert status(app) == (403, "HB705")
    assert status(app) == (401, "HB703")


@pytest.fixture
def provided(tmp_path: Path, clock: Clock) -> Iterator[tuple[Accounts, Sessions, set[str]]]:
    state, names = State(SqliteDatabase(tmp_path / "server.db")), {"ana"}
    oidc = Oidc(OidcSettings("https://issuer.example", "hubbub"))
    accounts = Accounts(state, analysts=lambda: names, oidc=oidc, clock=clock)
    yield accounts, Sessions(Keyring(b"s" * 32), accounts), names
    state.close()


def test_a_session_of_an_identity_provider_does_not_outlive_a_removal(
    provided: tuple[Accounts, Sessions, set[str]], clock: Clock
) -> None:
    accounts, sessions, names = provided
    cookie = sessions.sign(Principal("ana", "analyst", None, clock.now + SESSION_SECONDS))
    assert sessions.open(cookie).name == "ana"
    names.clear()
    accounts.withdraw({"ana"})
    names.add("ana")
    for later in (0, 60, SESSION_SECONDS - 60):
        clock.now += later - (clock.now - 1_800_000_000)
        with pytest.raises(AccessError, match="HB702"):
            sessions.open(cookie)
    clock.now = 1_800_000_000 + SESSION_SECONDS + 1
    assert sessions.open(sessions.sign(Principal("ana", "analyst", None, clock.now + 60))).name == "ana"


def test_a_second_removal_counts_from_itself(provided: tuple[Accounts, Sessions, set[str]], clock: Clock) -> None:
    accounts, _, _ = provided
    accounts.withdraw({"ana"})
    clock.now += SESSION_SECONDS - 10
    accounts.withdraw({"ana"})
    clock.now += 20
    assert accounts.withdrawn("ana")
