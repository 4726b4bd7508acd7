"""Errors of the service that few requests meet, with their codes and their HTTP status."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.server.conftest import lay_out

from hubbub.errors import ConfigError
from hubbub.server import config_editor, middleware


def refused(answer: httpx2.Response, status: int, code: str) -> None:
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert answer.json()["remedy"]


def test_a_method_that_is_not_supported_is_refused(shared: Any) -> None:
    refused(shared.client().request("PATCH", "/api/v1/me"), 405, "HB165")


def test_an_analyst_reads_no_other_budget(shared: Any) -> None:
    refused(shared.client("ana").get("/api/v1/budget", params={"analyst": "ben"}), 403, "HB712")


def test_one_verification_runs_at_a_time(shared: Any) -> None:
    with shared.service.audit._verifying:
        answer = shared.client("auditor").post("/api/v1/ledger/verify")
    refused(answer, 429, "HB724")
    assert answer.headers["Retry-After"] == "5"
    assert shared.client("auditor").post("/api/v1/ledger/verify").status_code == 200


def test_a_body_that_does_not_arrive_is_given_up(served: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(middleware, "BODY_SECONDS", 0.2)

    def body() -> Iterator[bytes]:
        yield b"{"
        time.sleep(1)
        yield b"}"

    answer = served.client().post("/api/v1/estimate", content=body(), headers={"Content-Type": "application/json"})
    refused(answer, 408, "HB729")


def test_the_ledger_of_a_running_server_does_not_move(app: Any) -> None:
    path = app.folder / "hubbub.yaml"
    path.write_text(path.read_text() + "ledger: {database: elsewhere/ledger.db}\n")
    with pytest.raises(ConfigError, match="HB427"):
        app.service.current.reload()


def test_a_file_whose_folder_takes_no_other_is_not_replaced(tmp_path: Path) -> None:
    """The draft beside it would have a name that is too long; a folder without write permission gives the same."""
    path = lay_out(tmp_path).rename(tmp_path / ("h" * 250 + ".yaml"))
    draft = config_editor.read(path)
    with pytest.raises(ConfigError, match="HB428"):
        config_editor.apply(path, draft.text + "# more\n", expected=draft.hash)
    assert config_editor.read(path) == draft
