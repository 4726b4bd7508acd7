"""`hubbub serve` and `hubbub analyst`, as an operator uses them."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hubbub.cli import main

Run = Callable[..., tuple[int, str, str]]
YAML = """\
# kept
version: 1
datasets:
  visits:
    source: visits.csv
    unit: row
    columns: {region: {values: [North, South]}}
    budget: {epsilon: 3}
analysts:
  ana: {visits: {epsilon: 1}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "visits.csv").write_text("region\n" + "North\nSouth\n" * 50)
    (tmp_path / "hubbub.yaml").write_text(YAML)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("HUBBUB_CONFIG", raising=False)
    return tmp_path


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def runner(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return runner


def test_an_analyst_is_added_given_a_token_and_removed(run: Run, folder: Path) -> None:
    code, out, _ = run("analyst", "add", "zoe", "--cap", "visits=0.5")
    assert code == 0
    assert "hubbub analyst token zoe" in out
    assert "zoe: {visits: {epsilon: 0.5}}" in (folder / "hubbub.yaml").read_text()
    code, token, err = run("analyst", "token", "zoe", "--days", "7")
    assert code == 0
    assert re.fullmatch(r"hub_[0-9a-f]{12}_[\w-]{43}\n", token, re.ASCII)
    assert "copy it now" in err
    code, out, _ = run("analyst", "list")
    assert token[4:16] in out
    assert token[17:-1] not in out
    code, out, _ = run("analyst", "remove", "zoe")
    assert code == 0
    assert "revoked 1 of their tokens" in out
    assert (folder / "hubbub.yaml").read_text() == YAML
    assert "revoked" in run("analyst", "list")[1]


def test_a_token_is_revoked_by_its_id(run: Run) -> None:
    token = run("analyst", "token", "olga", "--role", "owner")[1]
    assert run("analyst", "revoke", token[4:16])[0] == 0
    assert "revoked" in run("analyst", "list")[1]
    code, _, err = run("analyst", "revoke", "nonsense")
    assert code == 1
    assert "HB143" in err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("token", "mallory"), "HB144"),
        (("token", "ana", "--days", "0"), "HB144"),
        (("remove", "mallory"), "HB405"),
        (("add", "zoe", "--cap", "visits=9"), "HB406"),
        (("add", "zoe", "--cap", "visit=1"), "HB405"),
        (("add", "zoe", "--cap", "visits"), "HB145"),
        (("add", "zoe", "--cap", "visits=nan"), "HB102"),
        (("add", "a b"), "HB408"),
        (("list", "-c", "gone.yaml"), "HB410"),
    ],
)
def test_an_invalid_command_is_refused_and_changes_nothing(
    run: Run, folder: Path, arguments: tuple[str, ...], code: str
) -> None:
    exit_code, _, err = run("analyst", *arguments)
    assert exit_code == 1
    assert code in err
    assert (folder / "hubbub.yaml").read_text() == YAML


def test_the_config_can_be_named_by_a_variable(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "hubbub.yaml").rename(folder / "other.yaml")
    assert run("analyst", "list")[0] == 1
    monkeypatch.setenv("HUBBUB_CONFIG", str(folder / "other.yaml"))
    assert run("analyst", "list")[0] == 0


def test_check_reads_the_server_section(run: Run, folder: Path) -> None:
    (folder / "hubbub.yaml").write_text(YAML + "server: {host: 0.0.0.0}\n")
    code, out, _ = run("check")
    assert code == 1
    assert "HB421" in out
    (folder / "hubbub.yaml").write_text(YAML + "server: {port: 9000}\n")
    assert run("check")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "environment", "code"),
    [
        (["--host", "0.0.0.0"], {}, "HB421"),
        ([], {"HUBBUB_PROT": "1"}, "HB424"),
        (["--port", "70000"], {}, "HB420"),
        ([], {"HUBBUB_SECRET": "short"}, "HB422"),
        (["-c", "gone.yaml"], {}, "HB410"),
    ],
)
def test_a_server_that_is_exposed_or_misconfigured_does_not_start(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str], environment: dict[str, str], code: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    exit_code, out, err = run("serve", *arguments)
    assert exit_code == 1
    assert code in err
    assert "Serving" not in out


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        found: int = probe.getsockname()[1]
        return found


@pytest.fixture
def server(folder: Path, port: int) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-m", "hubbub", "serve", "--port", str(port)],
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"COLUMNS": "120"},
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5):
                break
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    yield process
    if process.poll() is None:
        process.kill()
    process.communicate(timeout=30)


def get(port: int, path: str, token: str) -> tuple[int, dict[str, object]]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_a_server_serves_tokens_that_are_made_and_revoked_while_it_runs(
    server: "subprocess.Popen[str]", run: Run, port: int
) -> None:
    token = run("analyst", "token", "ana")[1].strip()
    assert get(port, "/api/v1/me", token)[1]["name"] == "ana"
    run("analyst", "revoke", token[4:16])
    status, problem = get(port, "/api/v1/me", token)
    assert (status, problem["code"]) == (401, "HB703")
    run("analyst", "add", "zoe", "--cap", "visits=0.5")
    late = run("analyst", "token", "zoe")[1].strip()
    deadline = time.monotonic() + 20
    while get(port, "/api/v1/me", late)[0] != 200:
        assert time.monotonic() < deadline, "the server does not see the new analyst"
        time.sleep(1)
    run("analyst", "remove", "zoe")
    assert get(port, "/api/v1/me", late)[0] == 401


def test_a_second_server_on_the_same_file_refuses_to_start_and_the_first_stops_in_order(
    server: "subprocess.Popen[str]", folder: Path, port: int
) -> None:
    second = subprocess.run(
        [sys.executable, "-m", "hubbub", "serve", "--port", "0"],
        cwd=folder,
        text=True,
        capture_output=True,
        timeout=60,
        env=os.environ | {"COLUMNS": "120"},
    )
    assert second.returncode == 1
    assert "HB303" in second.stderr
    server.send_signal(signal.SIGTERM)
    out, err = server.communicate(timeout=60)
    assert "Traceback" not in err
    assert f"at http://127.0.0.1:{port}" in out
    assert "hubbub analyst token NAME --role owner" in out
    assert main(["verify", "ledger"]) == 0
