"""Progress on standard error: a bar in a terminal, lines elsewhere, nothing for a query whose progress would tell."""

import io
import sys
from typing import Any

import pytest
from tests.cli.test_cli import Run, folder, run  # noqa: F401 - fixtures

from hubbub.cli.progress import progress, working
from hubbub.client.protocol import Pause, Request, run_query


class Terminal(io.StringIO):
    """Standard error as a terminal."""

    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Make standard error a terminal; in the test itself, because pytest replaces it after the fixtures."""
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    return shown


def test_a_terminal_shows_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = terminal(monkeypatch)
    with working("running") as report:
        report(0.5, "halfway")
    assert "halfway" in shown.getvalue()


def test_elsewhere_working_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with working("running") as report:
        report(0.5, "halfway")
    assert capsys.readouterr().err == ""


def test_elsewhere_each_step_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("audit") as report:
        report(0.1, "one")
        report(0.2, "one")
        report(0.5, "two")
    assert capsys.readouterr().err == "audit:  10% one\naudit:  50% two\n"


def test_an_analysis_shows_its_steps(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    shown = terminal(monkeypatch)
    run("call", "tabulate", "table=visits", "columns=region", "--epsilon", "1")
    assert "writing" in shown.getvalue()


def test_a_query_shows_that_it_runs_and_no_steps(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    shown, bars = terminal(monkeypatch), []
    monkeypatch.setattr("rich.progress.Progress.update", lambda *_, **given: bars.append(given))
    run("query", "SELECT COUNT(*) FROM visits", "--epsilon", "1")
    assert "running" in shown.getvalue()
    assert bars == []


def test_a_server_tells_the_steps_of_a_job() -> None:
    """A pause carries the progress that the server reported, and none before it did."""
    steps = run_query({"sql": "CALL x()"}, retries=0)
    replies: list[Any] = [
        {"id": "j1", "state": "queued"},
        {"id": "j1", "state": "running"},
        {"id": "j1", "state": "running", "progress": {"done": 0.25, "what": "counting"}},
        {"id": "j1", "state": "done", "release": {"answer": 7}},
    ]

    class Response:
        is_success = True

        def __init__(self, body: Any) -> None:
            self.json = lambda: body

    seen = []
    step: Request | Pause = next(steps)
    while replies:
        if isinstance(step, Pause):
            seen.append(step.progress)
        reply = None if isinstance(step, Pause) else Response(replies.pop(0))
        if not replies:
            break
        step = steps.send(reply)  # type: ignore[arg-type]
    with pytest.raises(StopIteration) as end:
        steps.send(reply)  # type: ignore[arg-type]
    assert end.value.value == {"answer": 7}
    assert seen == [None, (0.25, "counting")]
