"""`hubbub study`: run the queries and analyses of a plan file at one privacy cost, and write one document.

Tested in tests/curator/test_study.py.
"""

import argparse
import json
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from hubbub.answers.study_file import EXAMPLE, SCHEMA
from hubbub.cli import options
from hubbub.cli.session import running, session_of
from hubbub.errors import ParameterError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = """\
examples:
  hubbub study example study.yaml                       write an example to start from
  hubbub study plan study.yaml                          what each part gets (free)
  hubbub study run study.yaml --to report.html          charge once, run once, and write the document
  hubbub study run study.yaml --to report.md            again, in another form: free while the data is the same
  hubbub study schema > study.schema.json               JSON schema of the file, for editors"""
    actions = parser.add_subparsers(dest="action", required=True, metavar="action")
    planned = actions.add_parser("plan", help="show the privacy cost and what each part gets (free)")
    ran = actions.add_parser("run", help="charge once, run once, and write one document")
    for action in (planned, ran):
        action.add_argument("file", metavar="FILE", help="the plan file, such as study.yaml")
        options.add_session(action)
    ran.add_argument("--to", metavar="FILE", help="write the document here: .html or .md (default: print Markdown)")
    ran.add_argument("--receipt", metavar="FILE", help="write all answers and their receipt here, for hubbub verify")
    options.add_key(ran)
    ran.add_argument("--fresh", action="store_true", help="run again with fresh noise and pay again")
    planned.set_defaults(act=_plan)
    ran.set_defaults(act=_run)
    example = actions.add_parser("example", help="write or print an example of a plan file")
    example.add_argument("file", metavar="FILE", nargs="?", help="a new file to write it to")
    example.set_defaults(act=_example)
    actions.add_parser("schema", help="print the JSON schema of plan files").set_defaults(act=_schema)


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command; the exit code of `plan` is 1 if the study would be refused."""
    code: int = args.act(args, console)
    return code


def _plan(args: argparse.Namespace, console: Console) -> int:
    with session_of(args) as session:
        plan = session.study(args.file).plan()
    if args.json:
        console.print_json(json.dumps(plan.to_json(), ensure_ascii=False))
    else:
        console.print(repr(plan), markup=False, soft_wrap=True)
    return 0 if plan.estimate.admitted else 1


def _run(args: argparse.Namespace, console: Console) -> int:
    from hubbub.answers.study import check_target
    from hubbub.cli import output

    output.check(argparse.Namespace(output=args.to, receipt=args.receipt, format="markdown"))
    if args.to is not None:
        check_target(args.to)
    with session_of(args) as session, running(session):
        report = session.study(args.file).run(key=args.key, fresh=args.fresh)
    if args.receipt:
        document = json.dumps(report.release.document(), indent=1, ensure_ascii=False)
        Path(args.receipt).write_text(f"{document}\n", encoding="utf-8")
    if args.json:
        answers = {name: answer.to_dict() for name, answer in report.items()}
        console.print_json(json.dumps({"title": report.file.title, "parts": answers}, ensure_ascii=False))
    elif args.to is None:
        console.print(report.markdown(), markup=False, soft_wrap=True, end="")
    if args.to is not None:
        report.write(args.to)
        console.print(f"Wrote {escape(args.to)}. Cost: {escape(report.release.cost())}", soft_wrap=True)
    return 0


def _example(args: argparse.Namespace, console: Console) -> int:
    if args.file is None:
        console.print(EXAMPLE, markup=False, soft_wrap=True, end="")
        return 0
    try:
        with Path(args.file).open("x", encoding="utf-8") as file:
            file.write(EXAMPLE)
    except OSError as error:
        raise ParameterError(
            "HB129", f"{args.file} cannot be written ({error.strerror}).", "Choose another file."
        ) from None
    console.print(f"Wrote {escape(args.file)}. Next: hubbub study plan {escape(args.file)}", soft_wrap=True)
    return 0


def _schema(args: argparse.Namespace, console: Console) -> int:  # noqa: ARG001 - all actions take both
    console.print_json(json.dumps(SCHEMA, ensure_ascii=False))
    return 0
