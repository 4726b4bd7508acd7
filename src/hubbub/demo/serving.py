"""The second half of the demo: the same data behind a real server, with an owner and an analyst who can sign in."""

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

import httpx
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
READY = 60.0  # seconds
FIRST = "SELECT year, COUNT(*) AS people FROM health GROUP BY year"
QUESTION = "SELECT health, AVG(visits) AS visits FROM health GROUP BY health"


def serve(folder: Path, console: Console, *, once: bool) -> None:
    """Start a server on the demo's data, answer a first question through it, and stay until Ctrl-C."""
    config = folder / "hubbub.yaml"
    tokens = people(config)
    port = _port(0 if once else PORT)
    with suppress(KeyboardInterrupt), _terminable(), _server(config, port, folder / "server.log") as url:
        console.print("\n[bold cyan]6  The same over HTTP[/]")
        with connect(url, tokens[ANALYST]) as session:
            render.release(session.query(FIRST, epsilon="0.2", rows=1), console)
        console.print()
        _welcome(url, tokens, console)
        if not once:
            _open(url)
            console.print("[bold]The server runs until Ctrl-C.[/] Its data and ledger are then removed.")
            while True:
                time.sleep(3600)


def people(config: Path) -> dict[str, str]:
    """Make a token for the owner and one for the analyst, for a day."""
    found = load(config)
    state = State.open(found)
    try:
        accounts = Accounts(state, analysts=lambda: found.policy.analysts.keys())
        return {
            OWNER: accounts.issue(OWNER, "owner", 1).text,
            ANALYST: accounts.issue(ANALYST, "analyst", 1).text,
        }
    finally:
        state.close()


def commands(url: str, token: str) -> tuple[str, str, str]:
    """Give the analyst's first three commands: curl, the command line, Python."""
    program = "hubbub" if shutil.which("hubbub") else shlex.quote(str(Path(sys.executable).with_name("hubbub")))
    python = shlex.quote(sys.executable)
    code = f'import hubbub; print(hubbub.connect("{url}", "{token}").query("{QUESTION}", epsilon=0.1))'
    return (
        f'curl -s {url}/api/v1/budget -H "Authorization: Bearer {token}"',
        f"HUBBUB_URL={url} HUBBUB_TOKEN={token} {program} query {shlex.quote(QUESTION)} --epsilon 0.1",
        f"{python} -c {shlex.quote(code)}",
    )


def _welcome(url: str, tokens: dict[str, str], console: Console) -> None:
    rows = [
        ("Pages", f"[bold]{url}[/]   sign in with a token:"),
        ("analyst", escape(tokens[ANALYST])),
        ("owner", escape(tokens[OWNER])),
    ]
    console.print(Panel(terminal.facts(rows), title="served", title_align="left", border_style="cyan"))
    console.print("[bold]The analyst's first three commands[/]: what is left, and one question, paid for once")
    for command in commands(url, tokens[ANALYST]):
        # as it is, on a line of its own: to be copied
        console.print(f"\n  {command}", markup=False, soft_wrap=True)
    console.print()


@contextmanager
def _terminable() -> Iterator[None]:
    """Take a SIGTERM like Ctrl-C: whatever ends the demo ends its server too."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _server(config: Path, port: int, log: Path) -> Iterator[str]:
    """Start a server in a process of its own, give its address when it is ready, and stop it in good order."""
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
    until = time.monotonic() + READY
    while process.poll() is None and time.monotonic() < until:
        with suppress(httpx.HTTPError):
            if httpx.get(f"{url}/readyz", timeout=5).status_code == httpx.codes.OK:
                return
        time.sleep(0.05)
    sys.stderr.write(log.read_text()[-2000:])
    raise RuntimeError("the demo's server did not start")


def _port(wanted: int) -> int:
    """Take this port, or any that is free."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _open(url: str) -> None:
    """Show the pages, where there is a screen to show them on."""
    screen = sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if screen and sys.stdout.isatty():
        webbrowser.open(url)
