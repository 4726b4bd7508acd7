"""`hubbub survey`: run a survey with randomized response."""

import argparse
import json
from math import exp
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from hubbub.answers import terminal
from hubbub.cli import options, output
from hubbub.core.numbers import brief
from hubbub.errors import ConfigError, QueryError
from hubbub.noise.source import system
from hubbub.surveys.collector import Collector, load_responses
from hubbub.surveys.estimate import SurveyEstimate, deviation, estimate_joint, estimate_question
from hubbub.surveys.page import describe_randomization, render_page
from hubbub.surveys.response import Truth, respond
from hubbub.surveys.survey import TEMPLATE, Survey, SurveyQuestion


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = """\
examples:
  hubbub survey init survey.yaml
  hubbub survey collect survey.yaml
  hubbub survey estimate survey.yaml responses.jsonl"""
    actions = parser.add_subparsers(dest="action", required=True, metavar="action")
    init = actions.add_parser("init", help="write an example questionnaire")
    init.set_defaults(act=_init)
    check = actions.add_parser("check", help="show the privacy cost and the expected accuracy of each question")
    check.add_argument(
        "--people", type=int, default=1000, metavar="N", help="expected number of respondents (default: %(default)s)"
    )
    options.add_json(check)
    output.add_output(check)
    check.set_defaults(act=_check)
    web = actions.add_parser("page", help="write a static web page that randomizes answers in the browser")
    web.add_argument("--output", default="survey.html", metavar="PATH", help="file to write (default: %(default)s)")
    web.add_argument("--to", metavar="URL", help="address to send responses to (default: show them for copying)")
    web.set_defaults(act=_page)
    answer = actions.add_parser("answer", help="randomize answers locally and print the response to send")
    answer.add_argument(
        "--set", action="append", default=[], metavar="NAME=ANSWER", help="an answer; check boxes: NAME=one,two"
    )
    answer.set_defaults(act=_answer)
    collector = actions.add_parser("collect", help="serve the page and store the responses")
    collector.add_argument(
        "--into", default="responses.jsonl", metavar="FILE", help="file to store responses in (default: %(default)s)"
    )
    collector.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="address to listen on (default: %(default)s)"
    )
    collector.add_argument(
        "--port", type=int, default=8322, metavar="N", help="port to listen on (default: %(default)s)"
    )
    collector.set_defaults(act=_collect)
    estimate = actions.add_parser("estimate", help="estimate the true number of people per answer, with intervals")
    for action in (init, check, web, answer, collector, estimate):
        action.add_argument(
            "file", nargs="?", default="survey.yaml", metavar="FILE", help="questionnaire (default: %(default)s)"
        )
    estimate.add_argument(
        "responses",
        nargs="?",
        default="responses.jsonl",
        metavar="RESPONSES",
        help="file of responses (default: %(default)s)",
    )
    estimate.add_argument("--joint", metavar="NAME,NAME", help="estimate the joint distribution of these questions")
    estimate.add_argument("--csv", action="store_true", help="print CSV")
    options.add_json(estimate)
    output.add_output(estimate)
    estimate.set_defaults(act=_estimate)
    for action in (init, web):
        action.add_argument("--force", action="store_true", help="replace an existing file")


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    args.act(args, console)
    return 0


def _read(args: argparse.Namespace) -> Survey:
    try:
        return Survey.parse(Path(args.file).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        raise QueryError("HB535", f"{args.file} cannot be read.", "Create one: hubbub survey init") from None


def _write(path: Path, text: str, *, force: bool) -> None:
    if path.exists() and not force:
        raise ConfigError("HB419", f"{path} already exists.", "Choose another file, or replace it with --force.")
    path.write_text(text, encoding="utf-8")


def _init(args: argparse.Namespace, console: Console) -> None:
    _write(Path(args.file), TEMPLATE, force=args.force)
    console.print(f"Wrote [bold]{escape(args.file)}[/]. Edit it, then run: hubbub survey check {escape(args.file)}")


def _check(args: argparse.Namespace, console: Console) -> None:
    survey = _read(args)
    rows = [
        (
            question.name,
            brief(question.epsilon),
            describe_randomization(question),
            f"±{1.96 * deviation(question, args.people):.4g}",
        )
        for question in survey.questions
    ]
    odds = exp(min(float(survey.epsilon), 700.0))

    def show(where: Console) -> None:
        where.print(f"[bold]{escape(survey.title)}[/]")
        headings = ("question", "ε", "randomization", f"error, {args.people} people")
        where.print(terminal.table(headings, rows, right=(1, 3)))
        where.print(
            f"Answering every question costs ε = {brief(survey.epsilon)} in total, because all responses come from the"
            f" same person. It changes the odds of any statement about them by a factor of at most {odds:.4g}."
        )

    names = ("question", "epsilon", "randomization", "error")
    form = {
        "title": survey.title,
        "epsilon": str(survey.epsilon),
        "questions": [dict(zip(names, row, strict=True)) for row in rows],
    }
    output.rows(names, rows, form, args, console, show)


def _page(args: argparse.Namespace, console: Console) -> None:
    _write(Path(args.output), render_page(_read(args), to=args.to), force=args.force)
    console.print(f"Wrote [bold]{escape(args.output)}[/], a single file that randomizes answers before sending them.")


def _answer(args: argparse.Namespace, console: Console) -> None:
    del console
    survey = _read(args)
    pairs = [pair.partition("=") for pair in args.set]
    truth: dict[str, Truth] = {name: value for name, _, value in pairs}
    for question in survey.questions:
        if question.boxes and question.name in truth:
            truth[question.name] = _checked_boxes(question, str(truth[question.name]))
    print(json.dumps(respond(survey, truth, system())))  # noqa: T201


def _checked_boxes(question: SurveyQuestion, text: str) -> list[str]:
    return [text] if text in question.answers else [box for box in text.split(",") if box]


def _collect(args: argparse.Namespace, console: Console) -> None:
    with Collector(_read(args), Path(args.into), host=args.host, port=args.port) as server:
        console.print(
            f"Collecting at http://{args.host}:{server.server_port}/ into {escape(args.into)}; press Ctrl-C to stop."
        )
        server.serve_forever()


def _estimate(args: argparse.Namespace, console: Console) -> None:
    survey = _read(args)
    responses, others = load_responses(survey, Path(args.responses))
    names = args.joint.split(",") if args.joint else []
    tables = (
        [estimate_joint(survey, names, responses)]
        if names
        else [estimate_question(survey, q.name, responses) for q in survey.questions]
    )

    def show(where: Console) -> None:
        for table in tables:
            shown = [(cell, *(f"{value:.6g}" for value in values)) for _, cell, *values in _rows(table)]
            where.print(f"[bold]{escape(' and '.join(table.questions))}[/]  ε = {brief(table.epsilon)} per person")
            where.print(terminal.table(("answer", "people", "95% from", "to"), shown, right=(1, 2, 3)))
        invalid = f"; {others} lines are not responses to this survey" if others else ""
        where.print(f"{len(responses)} people responded{invalid}.")

    names = ("questions", "answers", "count", "low", "high")
    lines = [line for table in tables for line in _rows(table)]
    estimates = [dict(zip(names, line, strict=True)) for line in lines]
    form = {"responses": len(responses), "invalid": others, "estimates": estimates}
    output.rows(names, lines, form, args, console, show)


def _rows(table: SurveyEstimate) -> list[tuple[str, str, float, float, float]]:
    cells = zip(table.cells, table.count.tolist(), table.low.tolist(), table.high.tolist(), strict=True)
    return [(" and ".join(table.questions), ", ".join(cell), *values) for cell, *values in cells]
