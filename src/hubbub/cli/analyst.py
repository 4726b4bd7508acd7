"""The analyst's commands: plan, query, publish and budget."""

import json
import os
import re
import secrets
import sys
from argparse import Namespace
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from hubbub.answers import render
from hubbub.answers.options import Options
from hubbub.answers.publish import FORMATS
from hubbub.client.session import ServedSession, connect
from hubbub.config.summary import sureness
from hubbub.core.schema import Value
from hubbub.curator.session import Session, open_session
from hubbub.errors import ParameterError


def plan(options: Namespace, console: Console) -> int:
    """Show what a question would cost and how exact it would be."""
    with _session(options) as session:
        found = session.estimate(_sql(options), **_options(options))
    if options.json:
        print(json.dumps(found.form()))  # noqa: T201
    else:
        render.estimate(found, console, sureness=sureness(found.epsilon), sql=options.sql_text)
    return 0 if found.admitted else 1


def query(options: Namespace, console: Console) -> int:
    """Ask, show the answer, and keep the receipt."""
    sql = _sql(options)
    words = sql.split(None, 1)
    if words and words[0].upper() == "EXPLAIN":
        options.sql, options.sql_text = words[1] if len(words) > 1 else "", False
        return plan(options, console)
    with _session(options) as session:
        key = secrets.token_hex(16) if options.fresh else options.key
        try:
            with _clock():
                release = session.query(sql, key=key, **_options(options))
        except KeyboardInterrupt:
            Console(stderr=True, highlight=False).print(
                "Stopped. If the charge was made it stays; the same question asked again is then answered without"
                " another one."
            )
            return 130
    if options.receipt:
        Path(options.receipt).write_text(json.dumps(release.document(), indent=1, ensure_ascii=False) + "\n")
    if options.json:
        print(json.dumps(release.to_dict(), ensure_ascii=False))  # noqa: T201
    elif options.csv:
        print(release.to_csv(), end="")  # noqa: T201
    else:
        render.release(release, console)
    return 0


def publish(options: Namespace, console: Console) -> int:
    """Ask, or take an earlier release by its number, and write it with its data sheet and receipt."""
    text = _sql(options)
    earlier = re.fullmatch(r"\s*\d{1,18}\s*", text, re.ASCII)
    if (options.epsilon is None and options.within is None) != bool(earlier):
        raise ParameterError(
            "HB172",
            "a question has a price, and an earlier release has none.",
            "Give --epsilon with a question, or the number of a release alone (hubbub audit ledger shows them).",
        )
    with _session(options) as session:
        what = session.release(int(text)) if earlier else text
        with _clock():
            paths = session.publish(
                what,
                options.to,
                name=options.name,
                title=options.title,
                notes=_read(options.notes),
                formats=options.format or FORMATS,
                force=options.force,
                key=options.key,
                **_options(options),
            )
    if options.json:
        print(json.dumps([str(path) for path in paths]))  # noqa: T201
    else:
        for path in paths:
            console.print(str(path), markup=False, soft_wrap=True)
    return 0


def budget(options: Namespace, console: Console) -> int:
    """Show what is spent and left."""
    with _session(options) as session:
        found = session.budget()
    if options.json:
        print(json.dumps([each.form() for each in found], ensure_ascii=False))  # noqa: T201
        return 0
    for each in found:
        render.budget(each, console)
    return 0


def _session(options: Namespace) -> Session | ServedSession:
    """Open the curator of a hubbub.yaml; or, where a server is named, go there as whoever the token is."""
    url = options.server or os.environ.get("HUBBUB_URL")
    if not url:
        return open_session(options.config, analyst=options.analyst)
    if options.analyst is not None:
        raise ParameterError("HB149", "a server knows who asks by the token.", "Leave out --analyst, or --server.")
    return connect(url, _token())


def _token() -> str:
    """Take the token from the environment or from a file: on the command line, others on the machine could see it."""
    path = os.environ.get("HUBBUB_TOKEN_FILE")
    try:
        token = Path(path).read_text(encoding="utf-8").strip() if path else os.environ.get("HUBBUB_TOKEN", "")
    except (OSError, UnicodeDecodeError):
        raise ParameterError(
            "HB149", f"{path} cannot be read.", "HUBBUB_TOKEN_FILE names a file with a token."
        ) from None
    if not token:
        raise ParameterError("HB149", "a server was named, and no token.", "Set HUBBUB_TOKEN; the owner gives tokens.")
    return token


def _sql(options: Namespace) -> str:
    """Take the question from the command, from a file (@question.sql) or from standard input (-)."""
    return sys.stdin.read() if options.sql == "-" else _read(options.sql) or ""


def _read(text: str | None) -> str | None:
    """Take a text as it is, or from the file that it names (@notes.txt)."""
    if text is None or not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise ParameterError("HB133", f"{text[1:]} cannot be read.", "Give the path of a file with text.") from None


def _clock() -> AbstractContextManager[object]:
    """Show how long it takes, to people. Only time: how far the engine is would depend on the data."""
    if not sys.stderr.isatty():
        return nullcontext()
    progress = Progress(
        SpinnerColumn(), TextColumn("asking"), TimeElapsedColumn(), console=Console(stderr=True), transient=True
    )
    progress.add_task("")
    return progress


def _options(options: Namespace) -> Options:
    return {
        "epsilon": options.epsilon,
        "within": options.within,
        "delta": options.delta,
        "groups": options.groups,
        "rows": options.rows,
        "parameters": tuple(map(_value, options.parameter)),
        "raw": options.raw,
        "weights": dict(map(_weight, options.weight)),
    }


def _weight(text: str) -> tuple[str, str]:
    name, sign, weight = text.rpartition("=")
    if not sign or not name:
        raise ParameterError("HB138", f"{text!r} is not a weight.", "Write the name of an output and a number: n=2.")
    return name, weight


def _value(text: str) -> Value:
    """Read a parameter as SQL would: 7, 0.5, true, 2020-01-31 and, in single quotes or not, text.

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
