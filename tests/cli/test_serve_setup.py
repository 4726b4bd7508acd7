"""`hubbub serve` in a terminal without hubbub.yaml: the set-up page, and then the server at its address."""

import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from hubbub.cli import main

CSV_COLUMNS = {"kind-0-0": "text", "use-0-0": "values", "values-0-0": "North, South"}
STEPS = {
    "data": {"table-0": "visits.csv"},
    "people": {"unit-0": "row"},
    "columns": CSV_COLUMNS,
    "budget": {"epsilon-0": "3"},
    "analyst": {"name": "ana", "cap-0": "1"},
    "write": {},
}


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """A server that writes to a terminal, and what shows the terminal."""
    (tmp_path / "visits.csv").write_text("region\n" + "North\nSouth\n" * 50)
    shown, own = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HUBBUB_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "hubbub", "serve", "--port", "0"],
        cwd=tmp_path,
        stdout=own,
        stderr=subprocess.DEVNULL,
        env=environment | {"TERM": "dumb", "COLUMNS": "200"},
    )
    os.close(own)
    yield process, shown
    if process.poll() is None:
        process.kill()
    process.wait(timeout=30)
    os.close(shown)


def read_until(shown: int, pattern: str) -> re.Match[str]:
    """Read the terminal until it shows something, or until the server has ended."""
    text = ""
    while (found := re.search(pattern, text)) is None:
        try:
            text += os.read(shown, 4096).decode()
        except OSError:  # the other end of a terminal was closed
            pytest.fail(f"the server ended, and {pattern!r} is not in {text!r}")
    return found


def test_the_page_writes_the_file_and_the_server_starts_at_its_address(
    terminal: tuple["subprocess.Popen[bytes]", int], tmp_path: Path
) -> None:
    process, shown = terminal
    url, token = read_until(shown, r"(http://127\.0\.0\.1:\d+)/setup\?token=([\w-]{43})\s").groups()
    with httpx2.Client(base_url=url, follow_redirects=True, timeout=60) as client:
        page = client.post("/setup", data={"link_token": token})
        for step, form in STEPS.items():
            csrf = re.search(r'name="csrf" value="(\w+)"', page.text)
            assert csrf is not None
            page = client.post(f"/setup/{step}", data={"csrf": csrf[1], **form})
            assert page.status_code == 200, page.text
        owner, analyst = re.findall(r"hub_[0-9a-f]{12}_[\w-]{43}", page.text)
        assert f'href="{url}/sign-in"' in page.text
        # the browser goes on at once: it waits until the server answers, and is never told that nobody listens
        me = client.get("/api/v1/me", headers={"Authorization": f"Bearer {owner}"}).json()
        assert (me["name"], me["role"]) == ("owner", "owner")
        me = client.get("/api/v1/me", headers={"Authorization": f"Bearer {analyst}"}).json()
        assert (me["name"], me["role"]) == ("ana", "analyst")
        assert client.get("/setup").status_code == 404
    read_until(shown, rf"Serving .*hubbub\.yaml.* at {url}")
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=60)
    assert (tmp_path / "hubbub.yaml").exists()


def test_a_set_up_that_is_stopped_writes_nothing(
    terminal: tuple["subprocess.Popen[bytes]", int], tmp_path: Path
) -> None:
    process, shown = terminal
    read_until(shown, r"/setup\?token=")
    process.send_signal(signal.SIGINT)
    read_until(shown, r"Stopped\. hubbub\.yaml was not written\.")
    assert process.wait(timeout=60) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["visits.csv"]


def test_without_a_terminal_a_missing_file_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HUBBUB_CONFIG", raising=False)
    assert main(["serve"]) == 1
    assert "HB410" in capsys.readouterr().err
