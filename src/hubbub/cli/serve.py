"""`hubbub serve`: serve analysts over HTTP, with web pages."""

import argparse
import os
import sys
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from hubbub.cli import options
from hubbub.config import load
from hubbub.curator.opening import exposed_files, storage_warnings
from hubbub.errors import ConfigError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = "example:\n  hubbub serve --config hubbub.yaml --port 8321"
    options.add_config(parser)
    parser.add_argument("--host", metavar="ADDRESS", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=int, metavar="N", help="port to listen on (default 8321)")


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command: serve until the process is stopped."""
    try:
        from hubbub.server.accounts import seconds
        from hubbub.server.app import serve
        from hubbub.server.service import Service
    except ModuleNotFoundError as error:
        raise ConfigError(
            "HB431",
            f"The server needs the library {error.name}, which is not installed.",
            "Run: pip install 'hubbub[server]'",
        ) from error
    os.umask(0o077)  # for files that libraries write: copies of data, database logs
    config = load(Path(args.config))
    closed = exposed_files(config)
    service = Service.open(Path(args.config), host=args.host, port=args.port)
    try:
        for path in closed:
            console.print(f"Other users had access to {escape(str(path))}; their permissions were removed.")
        for text in storage_warnings(config):
            console.print(f"[yellow]Warning[/]  {escape(text)}")
        # with port 0 the system chooses a port, known only once the server listens: its log shows it
        where = service.settings.url if service.settings.port else f"a free port of {service.settings.host} (see below)"
        console.print(f"Serving [bold]{escape(args.config)}[/] at {escape(where)}")
        tokens = service.state.tokens.list()
        if not any(t.role == "owner" and t.revoked is None and t.expires > seconds() for t in tokens):
            console.print("No owner token exists yet. Create one: hubbub analyst token NAME --role owner")
        sys.stdout.flush()
        serve(service)
    finally:
        service.close()
    return 0
