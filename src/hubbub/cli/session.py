"""Open the session that a command runs in, and read the query options of the command line."""

import os
import re
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from hubbub.answers.options import Options, ignore_progress
from hubbub.cli.progress import working
from hubbub.core.schema import Value
from hubbub.errors import ParameterError

if TYPE_CHECKING:
    from hubbub.answers.sandbox_session import SandboxSession
    from hubbub.client.session import RemoteSession
    from hubbub.curator.session import Session


def session_of(args: Namespace) -> "Session | RemoteSession":
    """Connect to the server that is named, or else open the local hubbub.yaml; import only what that needs."""
    url = args.server or os.environ.get("HUBBUB_URL")
    if not url:
        from hubbub.curator.session import open_session

        return open_session(args.config, analyst=args.analyst)
    if args.analyst is not None:
        raise ParameterError(
            "HB149", "--analyst cannot be used with a server: the token identifies the analyst.", "Remove --analyst."
        )
    from hubbub.client.session import connect

    return connect(url, _token())


@contextmanager
def sandbox_of(args: Namespace) -> Iterator["SandboxSession"]:
    """Open the sandbox of the server that is named, or of the local hubbub.yaml; its ledger is not opened."""
    if args.server or os.environ.get("HUBBUB_URL"):
        from hubbub.client.session import RemoteSession

        with session_of(args) as session:
            if not isinstance(session, RemoteSession):
                raise TypeError("a server has a remote session")
            yield session.sandbox()
        return
    from hubbub.curator.sandbox_session import open_sandbox

    with open_sandbox(args.config, analyst=args.analyst) as sandbox:
        yield sandbox


def _token() -> str:
    """Read the token from the environment or a file: other users could see it on the command line."""
    path = os.environ.get("HUBBUB_TOKEN_FILE")
    try:
        token = Path(path).read_text(encoding="utf-8").strip() if path else os.environ.get("HUBBUB_TOKEN", "")
    except (OSError, UnicodeDecodeError):
        raise ParameterError(
            "HB149", f"{path} cannot be read.", "Set HUBBUB_TOKEN_FILE to a file that contains a token."
        ) from None
    if not token:
        raise ParameterError(
            "HB149", "A server was given without a token.", "Set HUBBUB_TOKEN; the data owner issues tokens."
        )
    return token


def read_sql(args: Namespace) -> str:
    """Read the query from the command, from a file (@query.sql), or from standard input (-)."""
    return sys.stdin.read() if args.sql == "-" else read_text(args.sql) or ""


def read_text(text: str | None) -> str | None:
    """Return the text itself, or the contents of the file that it names (@notes.txt)."""
    if text is None or not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise ParameterError("HB133", f"{text[1:]} cannot be read.", "Pass the path of a text file.") from None


@contextmanager
def running(session: "Session | RemoteSession") -> Iterator[None]:
    """Show in a terminal that a query of this session runs, and the steps of an analysis."""
    with working("running") as report:
        session.on_progress = report
        try:
            yield
        finally:
            session.on_progress = ignore_progress


def query_options(args: Namespace) -> Options:
    """Read the options of a query."""
    return {
        "epsilon": args.epsilon,
        "within": args.within,
        "delta": args.delta,
        "groups": args.groups,
        "rows": args.rows,
        "parameters": tuple(map(_value, args.parameter)),
        "raw": args.raw,
        "intervals": args.intervals,
        "dialect": args.dialect,
        "weights": dict(map(_weight, args.weight)),
        "combine": getattr(args, "combine", False),
        "noise": getattr(args, "noise", None),
    }


def _weight(text: str) -> tuple[str, str]:
    name, sign, weight = text.rpartition("=")
    if not sign or not name:
        raise ParameterError(
            "HB138", f"{text!r} is not a weight.", "Write the name of an output and a number: --weight n=2."
        )
    return name, weight


def _value(text: str) -> Value:
    """Read a parameter as SQL would: 7, 0.5, true, 2020-01-31, and text with or without single quotes.

    >>> _value("7"), _value("0.5"), _value("'7'"), _value("true"), _value("2020-01-31")
    (7, Fraction(1, 2), '7', True, datetime.date(2020, 1, 31))
    """
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if re.fullmatch(r"[+-]?\d{1,18}", text, re.ASCII):
        return int(text)
    if re.fullmatch(r"[+-]?\d{1,18}\.\d{1,18}", text, re.ASCII):
        return Fraction(text)
    for read in (date.fromisoformat, datetime.fromisoformat):
        with suppress(ValueError):
            return read(text)
    return text
