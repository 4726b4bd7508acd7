"""Run the command of every row of the checklist and compare its figures (`make checklist`, `make papers`)."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.checklist.commands import COMMANDS
from tests.checklist.folder import make_folder
from tests.checklist.papers import FIGURES, PAGE, page
from tests.checklist.record import Row, shown
from tests.checklist.rows import ROWS
from tests.fixtures.server_process import free_port

LIMIT = 300  # seconds for one command


@dataclass(frozen=True)
class Outcome:
    """What a command printed: its figures by name, and what is wrong with them."""

    figures: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    seconds: float = 0.0


def _environment(folder: Path) -> dict[str, str]:
    """A user's environment: `hubbub` and `python` are on the path, state is kept in the folder, lines are not cut."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HUBBUB_")}
    return kept | {"PATH": path, "XDG_STATE_HOME": str(folder / ".state"), "COLUMNS": "400", "NO_COLOR": "1"}


@contextmanager
def _serving(folder: Path, environment: dict[str, str]) -> Iterator[dict[str, str]]:
    """Serve the folder, and say where and with which token."""
    token = subprocess.run(
        ["hubbub", "analyst", "token", "you"], cwd=folder, env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()
    url = f"http://127.0.0.1:{free_port()}"
    server = subprocess.Popen(
        ["hubbub", "serve", "--port", url.rpartition(":")[2]],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(url + "/api/v1/health", timeout=5).close()
                break
            except OSError:
                time.sleep(0.1)
        yield environment | {"HUBBUB_URL": url, "HUBBUB_TOKEN": token}
    finally:
        server.terminate()
        server.wait(30)


def output(row: Row, folder: Path) -> str:
    """What the command of this row prints in this folder."""
    words = ["bash", "-ec", row.command] if row.language == "shell" else ["python", "-c", row.command]
    environment = _environment(folder)

    def typed(environment: Mapping[str, str]) -> str:
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT)
        if done.returncode:
            raise RuntimeError(f"exit code {done.returncode}: {(done.stderr or done.stdout).strip()[-300:]}")
        return done.stdout

    if not row.server:
        return typed(environment)
    with _serving(folder, environment) as served:
        return typed(served)


def outcome(row: Row, template: Path, place: Path) -> Outcome:
    """Run one row in its own copy of the folder."""
    start = time.monotonic()
    shutil.copytree(template, place)
    try:
        text = output(row, place)
        figures = {figure.name: figure.read(text) for figure in row.figures}
    except (RuntimeError, LookupError, ValueError, subprocess.TimeoutExpired) as error:
        return Outcome(problem=str(error), seconds=time.monotonic() - start)
    wrong = [figure for figure in row.figures if not figure.holds(figures[figure.name])]
    problem = "; ".join(f"{figure.name} should be {figure.target} ({figure.source})" for figure in wrong)
    return Outcome(figures, problem, time.monotonic() - start)


def run(rows: Sequence[Row], *, jobs: int) -> Iterator[tuple[Row, Outcome]]:
    """Run rows, a few at a time, in their order."""
    with TemporaryDirectory() as name, ThreadPoolExecutor(jobs) as pool:
        template = make_folder(Path(name) / "template")
        results = pool.map(lambda row: outcome(row, template, Path(name) / str(row.number)), rows)
        yield from zip(rows, results, strict=True)


def lines(row: Row, result: Outcome) -> Iterator[str]:
    """The lines of the table for one row: name and command, then each figure beside what it should be."""
    state = "open" if not row.command else "FAILS" if result.problem else "holds"
    command = row.command.strip().replace("\n", "\n           ")
    yield f"{row.number:3d}  {state:5s}  {ROWS.get(row.number, row.says)}  ({result.seconds:.1f} s)"
    if row.command:
        yield f"           {command}"
    for figure in row.figures:
        if figure.name in result.figures:
            text = f"{figure.name} = {shown(result.figures[figure.name])}, expected {figure.target} ({figure.source})"
            yield f"           → {text}"
    if result.problem:
        yield f"           ! {result.problem}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the rows that are asked for; all of them by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--row", type=int, action="append", choices=sorted(COMMANDS), help="run this row; repeatable")
    parser.add_argument("--jobs", type=int, default=2, help="how many commands to run at once (default: 2)")
    parser.add_argument("--write", action="store_true", help="record the figures, and write docs/papers.md")
    args = parser.parse_args(arguments)
    numbers = args.row or sorted(COMMANDS)
    recorded: dict[str, dict[str, str]] = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    results: dict[int, Outcome] = {number: Outcome() for number in numbers if not COMMANDS[number].command}
    for row, result in run([COMMANDS[number] for number in numbers if COMMANDS[number].command], jobs=args.jobs):
        results[row.number] = result
        if not result.problem:
            recorded[str(row.number)] = dict(result.figures)
        print(*lines(row, result), sep="\n", flush=True)
    missing = sorted(number for number in numbers if not COMMANDS[number].command)
    failed = sorted(number for number, result in results.items() if result.problem)
    for number in missing:
        print(*lines(COMMANDS[number], results[number]), sep="\n")
    print(f"{len(numbers) - len(missing) - len(failed)} of {len(numbers)} rows hold.", end=" ")
    print(f"open: {missing or 'none'}; failed: {failed or 'none'}")
    if args.write:
        kept = {str(number): recorded[str(number)] for number in sorted(COMMANDS) if str(number) in recorded}
        FIGURES.write_text(json.dumps(kept, ensure_ascii=False, indent=1) + "\n")
        PAGE.write_text(page(kept))
    return 1 if failed or missing else 0


if __name__ == "__main__":
    sys.exit(main())
