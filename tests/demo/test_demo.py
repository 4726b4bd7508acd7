"""The demo: its tour, its server, and the facts that it states about its data."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import httpx2
import pytest

import hubbub
from hubbub.cli import main

HEALTH = Path(hubbub.__file__).parent / "demo" / "health.csv"


def test_the_demo_runs_three_queries_replays_one_and_is_refused_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["demo", "--once"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"\d{3} ±30", out), "about 600 people, within 30"
    assert out.count("Estimate privacy cost ε") == 3
    assert "free, from the ledger" in " ".join(out.split())
    assert re.search(r"HB5\d\d ", out)
    assert "Nothing was run or charged" in " ".join(out.split())
    assert "Budget before" in out
    assert re.search(r"Budget after +ε = 1\.4\d* of 3 remaining", out)
    assert "hubbub init" in out
    assert re.search(r"1 +5,\d{3} ±75", out), "people in the first year, answered over HTTP"
    assert len(set(re.findall(r"hub_[0-9a-f]{12}_[\w-]{43}", out))) == 2, "an owner's token and an analyst's"


def test_the_tour_is_written_to_a_file_or_for_programs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["demo", "--format", "json"]) == 0
    people, visits, dollars = json.loads(capsys.readouterr().out)
    assert abs(people["rows"][0][0] - 600) < 300
    assert ([row[0] for row in visits["rows"]], len(dollars["rows"])) == ([0, 25, 50, 95, 100], 1)
    assert main(["demo", "-o", str(tmp_path / "tour.txt")]) == 0
    assert capsys.readouterr().out == ""
    assert "Budget after" in (tmp_path / "tour.txt").read_text()


def test_the_demo_serves_until_it_is_stopped_and_its_three_commands_work(tmp_path: Path) -> None:
    demo = subprocess.Popen(
        [sys.executable, "-m", "hubbub", "demo"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(tmp_path), "COLUMNS": "100"},
    )
    assert demo.stdout is not None
    lines = []
    for line in demo.stdout:
        lines.append(line.strip())
        if "until Ctrl-C" in line:
            break
    (curl,) = (line for line in lines if line.startswith("curl "))
    (command,) = (line for line in lines if line.startswith("HUBBUB_URL="))
    (python,) = (line for line in lines if "import hubbub" in line)
    first, second = (
        subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True).stdout
        for line in (command, python)
    )
    assert "ε = 0.1;" in first
    assert "free, from the ledger" in second
    # the third without curl itself, which a machine may lack
    url, token = re.findall(r"(http://\S+) .*Bearer ([\w-]+)", curl)[0]
    reply = httpx2.get(url, headers={"Authorization": f"Bearer {token}"})
    assert reply.json()["budgets"][0]["analyst"] == "you"
    assert httpx2.get(url.replace("/api/v1/budget", "/")).status_code < 500
    demo.send_signal(signal.SIGINT)
    rest, _ = demo.communicate(timeout=60)
    assert demo.returncode == 0
    assert "hubbub init" in rest
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(url)
    assert not list(tmp_path.iterdir()), "nothing is left behind"


def test_the_first_answer_is_near_the_truth() -> None:
    """95% of answers are within 30 of 600; one is beyond 200 with probability below 1e-8."""
    sql = f"SELECT count(DISTINCT person) FROM '{HEALTH}' WHERE visits > 10"
    with duckdb.connect() as plain:
        assert plain.execute(sql).fetchall() == [(600,)]


def test_the_facts_about_the_data_are_true() -> None:
    sql = f"SELECT count(*), count(DISTINCT person), count(DISTINCT (person, coinsurance)) FROM '{HEALTH}'"
    with duckdb.connect() as plain:
        assert plain.execute(sql).fetchall() == [(20190, 5912, 5912)]


def test_the_files_of_the_demo_can_be_copied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--into", str(tmp_path / "mine")]) == 0
    assert main(["check", "-c", str(tmp_path / "mine" / "hubbub.yaml")]) == 0
    assert main(["demo", "--into", str(tmp_path / "mine")]) == 1
    assert "exists" in capsys.readouterr().err
