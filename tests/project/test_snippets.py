"""Run what the pages for people show: commands, configurations, Python and SQL, page by page, in the order of the page.

A page is one story in one folder. `sh` blocks are commands, `yaml` blocks with a title are written to that file and
checked, `python` blocks share their names, and `sql` blocks are asked of the demo. Blocks of output (`text`), and those
without a language, are not run; they may not contain what looks like an untested command, apart from those below.
"""

import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

import hubbub
from hubbub.cli import main
from hubbub.demo import HERE, lay_out

DOCS = Path(__file__).parents[2] / "docs"
FOLDERS = ("tutorials", "concepts", "guides")
_PAGES = (path.relative_to(DOCS) for folder in FOLDERS for path in sorted((DOCS / folder).glob("*.md")))
STORIES = ["../README.md", "start.md", *(page.as_posix() for page in _PAGES)]
COOKBOOK = "guides/cookbook.md"
#: Commands that a page shows without running them: they wait forever, install, or need a disaster.
SHOWN = ("pip install", "hubbub serve", "hubbub admin forfeit", "make demo", "make test")


@dataclass(frozen=True)
class Block:
    language: str
    title: str
    text: str


def blocks(page: str) -> Iterator[Block]:
    text = (DOCS / page).read_text(encoding="utf-8")
    for match in re.finditer(r"^```(\w*)(?: title=\"([^\"]+)\")?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield Block(match[1], match[2] or "", match[3])


def run_line(line: str) -> None:
    """Run one command: hubbub in this process, `cd` and `export` for all that follow, anything else in a shell."""
    words = shlex.split(line)
    if words[0] == "cd":
        os.chdir(words[1])
    elif words[0] == "export":
        name = words[1].partition("=")[0]
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        shown = subprocess.run(
            ["bash", "-euc", f"{line}; printenv {name}"],
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "PATH": path},
        )
        os.environ[name] = shown.stdout.strip()
    elif words[:3] == ["hubbub", "audit", "self"]:
        # a process of its own, because it forks: see `_FORKING` in tests/conftest.py
        subprocess.run([sys.executable, "-m", *words], check=True, timeout=120)
    elif words[0] == "hubbub":
        assert main(words[1:]) == 0, line
    else:
        subprocess.run(["bash", "-euc", line], check=True, timeout=60)


@contextmanager
def server(port: int) -> Iterator[None]:
    """What `hubbub serve` starts, on a free port."""
    command = [sys.executable, "-m", "hubbub", "serve", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            while True:
                assert process.poll() is None, process.stderr and process.stderr.read()
                with suppress(httpx2.TransportError):
                    if httpx2.get(f"http://127.0.0.1:{port}/readyz").status_code == 200:
                        break
            yield
        finally:
            process.terminate()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, without the settings of a server."""
    monkeypatch.chdir(tmp_path)
    for name in ("HUBBUB_URL", "HUBBUB_TOKEN"):
        monkeypatch.setenv(name, "")  # so that what a page exports is undone
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:pandas only supports SQLAlchemy:UserWarning")
@pytest.mark.parametrize("page", [page for page in STORIES if page != COOKBOOK])
def test_a_page_does_what_it_says(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, object] = {}
    port = free_port()
    with ExitStack() as running:
        for block in blocks(page):
            if block.language == "sh":
                for line in block.text.replace("8321", str(port)).splitlines():
                    if line == "hubbub serve":
                        running.enter_context(server(port))
                    else:
                        run_line(line)
            elif block.language == "python":
                exec(compile(block.text, page, "exec"), names)
            elif block.language == "yaml" and block.title:
                Path(block.title).write_text(block.text, encoding="utf-8")
                if not Path("health.csv").exists():
                    Path("health.csv").symlink_to(HERE / "health.csv")
                assert main(["check"]) == 0
            elif block.language == "sql":
                (folder / "asked").mkdir(exist_ok=True)
                lay_out(folder / "asked")
                with hubbub.open(folder / "asked" / "hubbub.yaml") as h:
                    assert h.query(block.text, epsilon=1).columns


@pytest.mark.parametrize("page", STORIES)
def test_no_command_is_shown_without_being_run(page: str) -> None:
    for block in blocks(page):
        assert block.language in ("", "sh", "sql", "python", "yaml", "text"), block
        if block.language in ("", "text"):
            shown = [line for line in block.text.splitlines() if re.match(r"(hubbub|pip|docker|make) ", line)]
            assert all(line.startswith(SHOWN) for line in shown), shown


def test_the_cookbook_has_forty_questions_and_each_is_answered(folder: Path) -> None:
    lay_out(folder)
    yaml = (folder / "hubbub.yaml").read_text(encoding="utf-8")
    plenty = yaml.replace("epsilon: 3, delta: 1e-7, per_query: 1}", "epsilon: 4000, delta: 1e-6, per_query: 50}")
    plenty = plenty.replace("you: {health: {epsilon: 3}}", "you: {health: {epsilon: 4000}}")
    assert plenty.count("4000") == 2
    (folder / "hubbub.yaml").write_text(plenty, encoding="utf-8")
    questions = [block.text for block in blocks(COOKBOOK) if block.language == "sql"]
    assert len(questions) == 40
    with hubbub.open(folder / "hubbub.yaml") as h:
        for question in questions:
            release = h.query(question, epsilon=20)
            assert release.rows, question


def test_a_broken_snippet_is_noticed(folder: Path) -> None:
    with pytest.raises(AssertionError):
        run_line("hubbub check")  # there is no hubbub.yaml here
    with pytest.raises(subprocess.CalledProcessError):
        run_line(f"{sys.executable} -c 'raise SystemExit(3)'")
