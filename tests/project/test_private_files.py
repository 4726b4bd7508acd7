"""What an installation writes is its owner's alone, under any umask. Every file is looked at, so a new one is too."""

import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import httpx2
import pytest

#: What a person writes, or asks to be written for others: it follows the umask.
FOR_OTHERS = {"hubbub.yaml", "hubbub.yaml.previous", "health.csv", "receipt.json", "audit.pub", "lines", "demo"}
COUNT = "SELECT year, COUNT(*) AS n FROM health GROUP BY year"
COMMANDS = (
    ("check",),
    ("query", COUNT, "--epsilon", "0.2", "--rows", "1", "--receipt", "receipt.json"),
    ("analyst", "token", "you"),
    ("stream", "make", "seen", "--kind", "density", "--universe", "1:9", "--epsilon", "0.1", "--dataset", "health"),
    ("stream", "feed", "seen", "--tail", "lines"),
    ("verify", "receipt.json"),
    ("audit", "ledger"),
    ("admin", "refresh", "health"),
)
#: Runs commands in one process, in a folder that is laid out first. An ordinary user may not be able to read the
#: sources that the tests run with, so everything is loaded by a first round before the user changes.
SCRIPT = """
import json, os, sys
from pathlib import Path
from hubbub.cli import main
folders, user, umask, commands = json.loads(sys.argv[1])
for folder in folders:
    os.umask(umask)
    if folder == folders[-1] and user is not None:
        os.setgroups([]); os.setgid(user); os.setuid(user)
    os.environ["XDG_STATE_HOME"] = str(Path(folder).parent / "state")
    assert main(["demo", "--into", folder]) == 0
    os.chdir(folder)
    # the anchor in its default place, and not in the demo's own
    lines = Path("hubbub.yaml").read_text().splitlines()
    Path("hubbub.yaml").write_text(chr(10).join(line for line in lines if not line.startswith("ledger:")))
    Path("lines").write_text("1" + chr(10) + "2" + chr(10))
    for command in commands:
        assert main(command) == 0, command
"""


class Installation:
    """A demo's folder in a home of its own."""

    def __init__(self, base: Path, umask: int) -> None:
        self.base, self.umask = base, umask
        self.folder, self.temporary = base / "demo", base / "tmp"
        self.environment = {
            **os.environ,
            "XDG_STATE_HOME": str(base / "state"),
            "TMPDIR": str(self.temporary),
            "COLUMNS": "200",
        }
        self.seen: set[Path] = set()

    def start(self, *arguments: str, output: IO[str]) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, *arguments],
            cwd=self.base,
            env=self.environment,
            umask=self.umask,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            text=True,
        )

    def run(self, *arguments: str) -> str:
        """Run a program to its end, and look at everything that it writes, also while it runs."""
        with tempfile.TemporaryFile("w+") as output:
            process = self.start(*arguments, output=output)
            while process.poll() is None:
                self.look()
                time.sleep(0.01)
            output.seek(0)
            said = output.read()
        assert process.returncode == 0, said
        self.look()
        return said

    def look(self) -> None:
        """Assert of everything below the folder that nobody else has a right on it."""
        for path in self.base.rglob("*"):
            try:
                facts = path.lstat()
                mode = stat.S_IMODE(facts.st_mode)
                # what the engine writes for itself lies in a folder of ours, where nobody else comes
                if self.temporary in path.parents and stat.S_IMODE(path.parent.stat().st_mode) == 0o700:
                    continue
            except FileNotFoundError:
                continue  # a temporary file that is gone
            if path.name in FOR_OTHERS or path in (self.folder, self.temporary):
                continue
            assert mode & 0o077 == 0, f"{path} has mode {mode:o}"
            self.seen.add(path)

    def check(self) -> None:
        """Assert that what should have been seen was."""
        names = {path.name for path in self.seen}
        expected = (
            "ledger.db ledger.db-wal ledger.db-shm ledger.db.lock versions.json versions.lock server.db server.db-wal "
            "streams.json streams.lock seen.stream seen.lock hubbub-ledger hubbub-streams state hubbub anchors"
        )
        assert set(expected.split()) <= names, sorted(set(expected.split()) - names)
        assert [name for name in names if name.endswith(".anchor")]


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that an ordinary user can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="hubbub-modes-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        (Path(folder) / "tmp").mkdir(mode=0o700)
        yield Path(folder)


def commands(place: Installation, *, user: int | None = None) -> str:
    folders = [str(place.folder)]
    if user is not None:
        (place.base / "first").mkdir(mode=0o700)
        folders = [str(place.base / "first" / "demo"), *folders]
        place.base.chmod(0o777)
        place.temporary.chmod(0o1777)
    return place.run("-c", SCRIPT, json.dumps([folders, user, place.umask, COMMANDS]))


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_everything_that_an_installation_keeps_is_its_owners_alone(home: Path, umask: int) -> None:
    place = Installation(home, umask)
    said = commands(place)
    token = next(line for line in said.splitlines() if line.startswith("hub_"))
    _served(place, token)
    place.check()
    assert "server.key" in {path.name for path in place.seen}


def test_so_it_is_for_an_ordinary_user(home: Path) -> None:
    place = Installation(home, 0o000)
    user = 65534 if os.geteuid() == 0 else None  # whoever is not root is an ordinary user already
    commands(place, user=user)
    place.check()
    assert {path.lstat().st_uid for path in place.seen if path.exists() and place.folder in path.parents} == {
        user or os.geteuid()
    }


def _served(place: Installation, token: str) -> None:
    """Serve: sign in by a page, ask, and look while the server has everything open."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = ("-m", "hubbub", "serve", "--port", str(port), "--config", str(place.folder / "hubbub.yaml"))
    with tempfile.TemporaryFile("w+") as output:
        server = place.start(*words, output=output)
    try:
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            until = time.monotonic() + 60
            while True:
                try:
                    if client.get("/readyz").status_code == 200:
                        break
                except httpx2.HTTPError:
                    assert time.monotonic() < until
                    assert server.poll() is None
                time.sleep(0.05)
            assert client.post("/sign-in", data={"token": token}).status_code < 500
            answer = client.post(
                "/api/v1/query",
                content=json.dumps({"sql": "SELECT COUNT(*) AS n FROM health", "epsilon": "0.1"}),
                headers={
                    "Authorization": f"Bearer {token}",
                    "Idempotency-Key": "k1",
                    "Content-Type": "application/json",
                },
            )
            assert answer.status_code == 200, answer.text
            place.look()
    finally:
        server.terminate()
        server.wait(timeout=60)
    place.look()
