"""`hubbub serve`: serve analysts over HTTP, with web pages."""

import argparse
import os
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from hubbub.cli import options
from hubbub.config import Config, load
from hubbub.curator.opening import exposed_files, storage_warnings
from hubbub.errors import ConfigError

if TYPE_CHECKING:
    from hubbub.server.settings import Settings
    from hubbub.server.state import State


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = "example:\n  hubbub serve --config hubbub.yaml --port 8321"
    options.add_config(parser)
    parser.add_argument("--host", metavar="ADDRESS", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=int, metavar="N", help="port to listen on (default 8321)")
    parser.add_argument(
        "--pg-port", type=int, metavar="N", help="port for PostgreSQL clients, such as 5433 (default: none)"
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=1,
        metavar="N",
        help="server processes that share the address, about one for each core (default 1)",
    )


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command: serve until the process is stopped."""
    try:
        from hubbub.gateway.listener import beside, listen
        from hubbub.server.app import serve
        from hubbub.server.service import Service
        from hubbub.server.worker import MAX_WORKERS
    except ModuleNotFoundError as error:
        raise ConfigError(
            "HB431",
            f"The server needs the library {error.name}, which is not installed.",
            "Run: pip install 'hubbub[server]'",
        ) from error
    if not 1 <= args.workers <= MAX_WORKERS:
        raise ConfigError(
            "HB420", f"--workers must be 1 to {MAX_WORKERS}.", "Use about as many as the machine has cores."
        )
    os.umask(0o077)  # for files that libraries write: copies of data, database logs
    waiting = None
    if not Path(args.config).exists() and sys.stdout.isatty():
        waiting = _set_up(args, console)
        if waiting is None:
            return 1
    config = load(Path(args.config))
    closed = exposed_files(config)
    if waiting is not None and (args.workers > 1 or not _same_address(waiting, args)):
        waiting.close()
        waiting = None
    if args.workers > 1:
        return _supervise(args, console, config, closed)
    service = Service.open(Path(args.config), host=args.host, port=args.port, pg_port=args.pg_port)
    try:
        sockets = listen(service.settings)
        _warn(console, config, closed)
        # with port 0 the system chooses a port, known only once the server listens: its log shows it
        where = service.settings.url if service.settings.port else f"a free port of {service.settings.host} (see below)"
        _announce(console, f"Serving [bold]{escape(args.config)}[/] at {escape(where)}", service.state)
        for opened in sockets:
            console.print(f"PostgreSQL clients: port {opened.getsockname()[1]}")
        sys.stdout.flush()
        serve(service, None if waiting is None else [waiting], beside=beside(service, sockets))
    finally:
        service.close()
    return 0


def _set_up(args: argparse.Namespace, console: Console) -> socket.socket | None:
    """Let the owner write hubbub.yaml in a browser; return the port, which stays open, or None after Ctrl-C."""
    from hubbub.server.setup.app import listen, run

    settings = _settings_without_file(args)
    listening = listen(settings.port)
    args.port = listening.getsockname()[1]

    def show(link: str) -> None:
        console.print(
            f"There is no {escape(args.config)} yet. Set it up in a browser on this machine:\n\n  {escape(link)}\n\n"
            "The link works once. Nothing is written before you confirm it. Press Ctrl-C to stop.",
            soft_wrap=True,
        )
        sys.stdout.flush()

    if run(Path(args.config), listening, replace(settings, port=args.port).url, show):
        return listening
    listening.close()
    console.print(f"Stopped. {escape(args.config)} was not written.")
    return None


def _settings_without_file(args: argparse.Namespace) -> "Settings":
    """Read the settings from the environment and the command line: there is no file yet."""
    from hubbub.server import settings

    base = Path(args.config).parent
    return settings.read({}, base=base, folder=base, environment=os.environ, host=args.host, port=args.port, make=False)


def _same_address(waiting: socket.socket, args: argparse.Namespace) -> bool:
    """Return whether the server listens where the set-up page did."""
    settings = _settings_without_file(args)
    return (settings.host, settings.port) == waiting.getsockname()[:2] and settings.certificate is None


def _supervise(args: argparse.Namespace, console: Console, config: Config, closed: list[Path]) -> int:
    """Run several workers."""
    from hubbub.gateway.listener import beside, listen
    from hubbub.server.service import read_settings
    from hubbub.server.state import State
    from hubbub.server.supervisor import Port, Supervisor

    settings = read_settings(Path(args.config), host=args.host, port=args.port, pg_port=args.pg_port)
    supervisor = Supervisor(Path(args.config), settings, args.workers, more=Port(listen, beside))

    def ready() -> None:
        where = replace(settings, port=supervisor.port).url
        state = State.open(config)
        try:
            text = f"Serving [bold]{escape(args.config)}[/] at {escape(where)} with {args.workers} workers"
            _announce(console, text, state)
            if supervisor.more_port is not None:
                console.print(f"PostgreSQL clients: port {supervisor.more_port}")
                sys.stdout.flush()
        finally:
            state.close()  # before the next worker is forked, which must not inherit a connection

    _warn(console, config, closed)
    return supervisor.run(ready)


def _warn(console: Console, config: Config, closed: list[Path]) -> None:
    for path in closed:
        console.print(f"Other users had access to {escape(str(path))}; their permissions were removed.")
    for text in storage_warnings(config):
        console.print(f"[yellow]Warning[/]  {escape(text)}")


def _announce(console: Console, text: str, state: "State") -> None:
    from hubbub.server.accounts import seconds

    console.print(text)
    tokens = state.tokens.list()
    if not any(t.role == "owner" and t.revoked is None and t.expires > seconds() for t in tokens):
        console.print("No owner token exists yet. Create one: hubbub analyst token NAME --role owner")
    sys.stdout.flush()
