"""`hubbub mcp`: serve an AI assistant on this machine by the Model Context Protocol.

Tested in tests/mcp/test_stdio.py.
"""

import argparse
from fractions import Fraction

from rich.console import Console

from hubbub.cli import options
from hubbub.cli.session import session_of
from hubbub.core import numbers
from hubbub.errors import ConfigError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = """\
An assistant may ask for estimates and for answers that are free. Whatever costs something needs
consent: your client asks you, or you allow an amount in advance.

examples:
  hubbub mcp                        estimates and free answers, or ask me each time
  hubbub mcp --allow 0.5            let the assistant spend up to ε = 0.5 without asking
  hubbub mcp --server https://…     the same with a server; set HUBBUB_TOKEN"""
    options.add_session(parser, json=False)
    parser.add_argument(
        "--allow", default="0", metavar="ε", help="what the assistant may spend without asking (default: 0, nothing)"
    )
    parser.add_argument("--allow-delta", default="0", metavar="δ", help="the δ that it may spend (default: 0)")


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command: answer on standard output until the client closes standard input."""
    del console  # standard output belongs to the protocol
    try:
        from hubbub.mcp.allowance import Allowance, PrivacyAmount
        from hubbub.mcp.backend import SessionBackend
        from hubbub.mcp.server import build, serve_stdio
        from hubbub.mcp.spending import Caller
    except ModuleNotFoundError as error:
        raise ConfigError(
            "HB431",
            f"The MCP server needs the library {error.name}, which is not installed.",
            "Run: pip install 'hubbub[mcp]'",
        ) from error
    allowed = PrivacyAmount(_amount(args.allow, "--allow"), _amount(args.allow_delta, "--allow-delta"))
    with session_of(args) as session:
        caller = Caller(SessionBackend(session), Allowance(), allowed, session.analyst)
        serve_stdio(build(lambda _: caller))
    return 0


def _amount(text: str, name: str) -> Fraction:
    """Read an amount; 0 allows nothing."""
    return numbers.in_range(text, name, Fraction(0), Fraction(1000))
