"""The commands of `hubbub survey`."""

import csv
import json
import sys
from argparse import Namespace
from math import exp
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from hubbub.answers import terminal
from hubbub.core.numbers import brief
from hubbub.errors import ConfigError, QueryError
from hubbub.noise.source import system
from hubbub.surveys import collect
from hubbub.surveys.estimate import Estimated, deviation, joint, single
from hubbub.surveys.page import page, promise
from hubbub.surveys.respond import Truth, respond
from hubbub.surveys.survey import TEMPLATE, Question, Survey


def survey(options: Namespace, console: Console) -> int:
    """Do one of the commands."""
    return {
        "init": _init,
        "check": _check,
        "page": _page,
        "answer": _answer,
        "collect": _collect,
        "estimate": _estimate,
    }[options.what](options, console)


def _read(options: Namespace) -> Survey:
    try:
        return Survey.parse(Path(options.file).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        raise QueryError("HB535", f"{options.file} cannot be read.", "Begin with: hubbub survey init") from None


def _write(path: Path, text: str, *, force: bool) -> None:
    if path.exists() and not force:
        raise ConfigError("HB419", f"{path} exists.", "Name another file, or replace it (--force).")
    path.write_text(text, encoding="utf-8")


def _init(options: Namespace, console: Console) -> int:
    _write(Path(options.file), TEMPLATE, force=options.force)
    console.print(f"Wrote [bold]{escape(options.file)}[/]. Change it, then: hubbub survey check {escape(options.file)}")
    return 0


def _check(options: Namespace, console: Console) -> int:
    asked = _read(options)
    rows = [
        (each.name, brief(each.epsilon), promise(each), f"±{1.96 * deviation(each, options.people):.4g}")
        for each in asked.questions
    ]
    console.print(f"[bold]{escape(asked.title)}[/]")
    console.print(terminal.table(("question", "ε", "what is done", f"of {options.people} people"), rows, right=(1, 3)))
    odds = exp(min(float(asked.epsilon), 700.0))
    console.print(
        f"Whoever answers everything pays ε = {brief(asked.epsilon)}: the sum, for all that is sent belongs to one"
        f" person. The odds of anything about them change by at most {odds:.4g}."
    )
    return 0


def _page(options: Namespace, console: Console) -> int:
    _write(Path(options.output), page(_read(options), to=options.to), force=options.force)
    console.print(f"Wrote [bold]{escape(options.output)}[/]: one file, which randomizes before it sends.")
    return 0


def _answer(options: Namespace, console: Console) -> int:
    del console
    asked = _read(options)
    given = [pair.partition("=") for pair in options.set]
    truth: dict[str, Truth] = {name: value for name, _, value in given}
    for question in asked.questions:
        if question.boxes and question.name in truth:
            truth[question.name] = _ticked(question, str(truth[question.name]))
    print(json.dumps(respond(asked, truth, system())))  # noqa: T201
    return 0


def _ticked(question: Question, text: str) -> list[str]:
    return [text] if text in question.answers else [each for each in text.split(",") if each]


def _collect(options: Namespace, console: Console) -> int:
    with collect.Collector(_read(options), Path(options.into), host=options.host, port=options.port) as server:
        console.print(f"http://{options.host}:{server.server_port}/ collects into {escape(options.into)}; Ctrl-C ends.")
        server.serve_forever()
    return 0


def _estimate(options: Namespace, console: Console) -> int:
    asked = _read(options)
    responses, others = collect.load(asked, Path(options.responses))
    names = options.joint.split(",") if options.joint else []
    found = [joint(asked, names, responses)] if names else [single(asked, q.name, responses) for q in asked.questions]
    if options.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(("questions", "answers", "count", "low", "high"))
        for table in found:
            writer.writerows(_rows(table))
        return 0
    for table in found:
        shown = [(cell, *(f"{value:.6g}" for value in values)) for _, cell, *values in _rows(table)]
        console.print(f"[bold]{escape(' and '.join(table.questions))}[/]  ε = {brief(table.price)} for each person")
        console.print(terminal.table(("answer", "people", "95% from", "to"), shown, right=(1, 2, 3)))
    refused = f", {others} lines are no responses to this survey" if others else ""
    console.print(f"{len(responses)} people answered{refused}.")
    return 0


def _rows(table: Estimated) -> list[tuple[str, str, float, float, float]]:
    ends = zip(table.cells, table.count.tolist(), table.low.tolist(), table.high.tolist(), strict=True)
    return [(" and ".join(table.questions), ", ".join(cell), *values) for cell, *values in ends]
