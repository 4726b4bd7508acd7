"""Long queries: what the terminal shows meanwhile, what stops them, and what the ledger records."""

import json
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from hubbub.cli import main

Run = Callable[..., tuple[int, str, str]]

#: As much work per row as the language allows, on three million rows: slow on every engine.
SLOW = "SELECT COUNT(*) AS n FROM visits WHERE " + "greatest(0.5, age / " * 5 + "age" + ")" * 5 + " > 0"
#: As many people as rows: a distinct count that needs much memory.
PEOPLE = "SELECT COUNT(DISTINCT patient) AS n FROM visits"
#: The control sequences of a terminal.
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Write the data and a hubbub.yaml with these engine limits."""
    monkeypatch.chdir(tmp_path)

    def writer(patients: int, rows: int, limits: str) -> None:
        with duckdb.connect() as made:
            made.execute(
                f"COPY (SELECT i % {patients} AS patient, 1 AS age FROM range({rows}) t(i))"
                f" TO '{tmp_path}/visits.parquet'"
            )
        (tmp_path / "hubbub.yaml").write_text(
            "version: 1\n"
            "datasets:\n"
            "  visits:\n"
            "    source: visits.parquet\n"
            "    unit: {column: patient, groups: 1, rows: 5}\n"
            "    columns: {patient: {}, age: {bounds: [0, 110]}}\n"
            "    budget: {epsilon: 3}\n"
            "analysts: {ana: {visits: {epsilon: 3}}}\n"
            f"engine: {limits}\n"
        )

    return writer


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def runner(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        return code, *capsys.readouterr()

    return runner


def spent(run: Run) -> str:
    caps = json.loads(run("budget", "--json")[1])[0]["caps"]
    return str(next(cap["spent"] for cap in caps if cap["scope"] == "analyst"))


@pytest.mark.parametrize(
    ("patients", "rows", "sql", "limits"),
    [
        (1, 3_000_000, SLOW, "{seconds: 1, threads: 1}"),
        (6_000_000, 6_000_000, PEOPLE, "{memory: 100, disk: 0, threads: 1, seconds: 100}"),
    ],
    ids=["time", "memory"],
)
def test_a_query_beyond_its_limits_ends_in_one_constant_and_keeps_its_charge(
    write: Callable[..., None], run: Run, patients: int, rows: int, sql: str, limits: str
) -> None:
    """The limits that hubbub.yaml names are those of the engine; a second try is paid for by the first."""
    write(patients, rows, limits)
    for _ in range(2):
        start = time.monotonic()
        code, out, err = run("query", sql, "-e", "1")
        assert code == 1
        assert out == ""
        assert err.startswith("HB900")
        assert time.monotonic() - start < 60
    assert spent(run) == "1"
    assert run("verify", "ledger")[0] == 0
    assert len(json.loads(run("audit", "ledger", "--unreleased", "--json")[1])) == 1


def test_a_query_within_its_limits_is_answered(write: Callable[..., None], run: Run) -> None:
    """The same query as above, so the limit is what stopped it there."""
    write(4_000, 4_000, "{memory: 100, disk: 0, threads: 1, seconds: 100}")
    assert run("query", PEOPLE, "-e", "1")[0] == 0


def test_the_terminal_shows_the_elapsed_time_and_nothing_else(write: Callable[..., None]) -> None:
    """Nothing that depends on the data: neither how far the engine is nor how much there is to do."""
    write(1, 3_000_000, "{seconds: 4, threads: 1}")
    terminal, end = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "hubbub", "query", SLOW, "-e", "1"],
        stdout=subprocess.PIPE,
        stderr=end,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(end)
    shown = b""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # the other end of the terminal was closed
            break
        if not part:
            break
        shown += part
    child.communicate(timeout=60)
    os.close(terminal)
    assert child.returncode == 1
    lines = {line.strip() for line in re.split(r"[\r\n]+", CONTROL.sub("", shown.decode()))}
    progress = {line for line in lines if "running" in line}
    assert len({re.sub(r"^\S+ ", "", line) for line in progress}) >= 2, lines
    assert all(re.fullmatch(r"\S running \d+:\d\d:\d\d", line) for line in progress), progress
    error = " ".join(line for line in lines - progress if line)
    assert "HB900" in error
    assert not re.search(r"\d{4}|%", error.replace("HB900", ""))


def test_no_progress_is_written_without_a_terminal(write: Callable[..., None]) -> None:
    write(10, 100, "{threads: 1}")
    found = subprocess.run(
        [sys.executable, "-m", "hubbub", "query", PEOPLE, "-e", "1"], capture_output=True, text=True, check=True
    )
    assert found.stderr == ""
