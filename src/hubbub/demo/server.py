"""The second part of the demo: a real server on the sample data, with tokens for an owner and an analyst.

Tested in tests/demo/test_demo.py.
"""

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx2
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel

from hubbub.answers import render, terminal
from hubbub.client.session import connect
from hubbub.config import load
from hubbub.private_files import private_file
from hubbub.server.accounts import Accounts
from hubbub.server.state import State

ANALYST, OWNER = "you", "owner"
PORT = 8321
STARTUP_SECONDS = 60.0
PEOPLE_PER_YEAR = "SELECT year, COUNT(*) AS people FROM health GROUP BY year"
VISITS_BY_HEALTH = "SELECT health, AVG(visits) AS visits FROM health GROUP BY health"


def serve(folder: Path, console: Console, *, once: bool) -> None:
    """Start a server on the demo's data, run a first query through it, and serve until Ctrl-C."""
    config = folder / "hubbub.yaml"
    tokens = create_tokens(config)
    port = _port(0 if once else PORT)
    with suppress(KeyboardInterrupt), _terminable(), _server(config, port, folder / "server.log") as url:
        console.print("\n[bold cyan]6  A query over HTTP[/]")
        with connect(url, tokens[ANALYST]) as session:
            render.release(session.query(PEOPLE_PER_YEAR, epsilon="0.2", rows=1), console)
        console.print()
        _welcome(url, tokens, console)
        if not once:
            _open(url)
            console.print("[bold]The server runs until Ctrl-C.[/] Then its data and ledger are removed.")
            while True:
                time.sleep(3600)


def create_tokens(path: Path) -> dict[str, str]:
    """Create a token for the owner and one for the analyst, valid for one day."""
    config = load(path)
    state = State.open(config)
    try:
        accounts = Accounts(state, analysts=lambda: config.policy.analysts.keys())
        return {
            OWNER: accounts.issue(OWNER, "owner", 1).text,
            ANALYST: accounts.issue(ANALYST, "analyst", 1).text,
        }
    finally:
        state.close()


def commands(url: str, token: str) -> tuple[str, str, str]:
    """Return three commands for the analyst: curl, the command line, Python."""
    program = "hubbub" if shutil.which("hubbub") else shlex.quote(str(Path(sys.executable).with_name("hubbub")))
    python = shlex.quote(sys.executable)
    code = f'import hubbub; print(hubbub.connect("{url}", "{token}").query("{VISITS_BY_HEALTH}", epsilon=0.1))'
    return (
        f'curl -s {url}/api/v1/budget -H "Authorization: Bearer {token}"',
        f"HUBBUB_URL={url} HUBBUB_TOKEN={token} {program} query {shlex.quote(VISITS_BY_HEALTH)} --epsilon 0.1",
        f"{python} -c {shlex.quote(code)}",
    )


def _welcome(url: str, tokens: dict[str, str], console: Console) -> None:
    rows = [
        ("Pages", f"[bold]{url}[/]   sign in with one of these tokens:"),
        ("analyst", escape(tokens[ANALYST])),
        ("owner", escape(tokens[OWNER])),
    ]
    console.print(Panel(terminal.facts(rows), title="server", title_align="left", border_style="cyan"))
    console.print(
        "[bold]Three commands for the analyst[/]: the remaining budget, and one query that is charged only once"
    )
    for command in commands(url, tokens[ANALYST]):
        # unwrapped, on its own line, so that it can be copied
        console.print(f"\n  {command}", markup=False, soft_wrap=True)
    console.print()


@contextmanager
def _terminable() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C, so that the server always ends with the demo."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _server(config: Path, port: int, log: Path) -> Iterator[str]:
    """Start a server in its own process, yield its address once it is ready, and stop it at the end."""
    with private_file(log, "a") as file:
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "hubbub", "serve", "--config", str(config), "--port", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _await_ready(url, process, log)
        yield url
    finally:
        process.terminate()
        process.wait()


def _await_ready(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + STARTUP_SECONDS
    while process.poll() is None and time.monotonic() < until:
        with suppress(httpx2.HTTPError):
            if httpx2.get(f"{url}/readyz", timeout=5).status_code == httpx2.codes.OK:
                return
        time.sleep(0.05)
    sys.stderr.write(log.read_text()[-2000:])
    raise RuntimeError("The demo's server did not start.")


def _port(wanted: int) -> int:
    """Return the wanted port if it is free, else any free port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _open(url: str) -> None:
    """Open the web pages if there is a screen."""
    screen = sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if screen and sys.stdout.isatty():
        webbrowser.open(url)
