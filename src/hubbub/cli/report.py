"""`hubbub report`: documents about this deployment, and what changed between two dates."""

import argparse
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console
from rich.markup import escape

from hubbub.cli import options, output
from hubbub.cli.progress import working
from hubbub.errors import ParameterError

if TYPE_CHECKING:  # importing them takes longer than showing the help
    from hubbub.config import Config
    from hubbub.reports.document import Document, DocumentItem
    from hubbub.reports.facts import Deployment

_KINDS = {
    "registry": "an entry for a registry of deployments, in three tiers",
    "nist": "the questions of NIST SP 800-226 about a guarantee",
    "dpia": "the parts of a data protection impact assessment",
    "data-sheet": "what each dataset is, what is protected, and its uses",
    "methods": "a methods section",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    kinds = "\n".join(f"  {name:<12}{text}" for name, text in _KINDS.items())
    parser.description = (
        "Write a document about this deployment from its ledger and hubbub.yaml. Every statement has its evidence;\n"
        "what only people know is listed as not answered, unless you answer it in a file.\n\n"
        f"documents:\n{kinds}\n  questions   the questions that only you can answer, as a file to fill in\n"
        "  checklist   for one release: what an output checker looks at\n"
        "  diff        what was asked, spent and changed between two dates"
    )
    parser.epilog = """\
examples:
  hubbub report registry
  hubbub report questions > about.yaml
  hubbub report dpia --about about.yaml --out dpia.html
  hubbub report nist --out nist.json            signed with the key of this installation
  hubbub report checklist --release 17 --out release-17.pdf
  hubbub report diff --since 2026-01-01 --until 2026-02-01"""
    parser.add_argument(
        "kind", choices=(*_KINDS, "questions", "checklist", "diff"), metavar="DOCUMENT", help="see above"
    )
    parser.add_argument("--about", metavar="FILE", help="your answers: a YAML file of names and texts")
    parser.add_argument("--audit", metavar="FILE", help="a signed report of hubbub audit self, to include")
    parser.add_argument(
        "-o", "--out", metavar="FILE", help="write it here: .md, .html, .pdf or .json (default: print Markdown)"
    )
    parser.add_argument("--release", type=int, metavar="N", help="with checklist: the number of the release")
    parser.add_argument("--since", metavar="TIME", help="with diff: from this time on, such as 2026-01-31 (UTC)")
    parser.add_argument("--until", metavar="TIME", help="with diff: before this time (default: now)")
    options.add_json(parser)
    options.add_config(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    from hubbub.config import load
    from hubbub.reports import changes, forms
    from hubbub.reports.assessments import DOCUMENTS
    from hubbub.reports.facts import read

    config = load(Path(args.config))
    if args.kind == "diff":
        if args.since is None:
            raise ParameterError("HB136", "No start of the period was given.", "Pass --since 2026-01-31.")
        until = datetime.now(UTC) if args.until is None else _time(args.until)
        found = changes.changes(config, _time(args.since), until)
        as_json = args.json or (args.out or "").endswith(".json")
        text = json.dumps(found.to_json(), ensure_ascii=False) if as_json else "\n".join(found.lines)
        with output.text_file(args.out) as file:
            file.write(f"{text}\n")
        return 0
    about, audit = _about(args.about), _audit(args.audit, config)
    with working("reading the ledger"):
        deployment = read(config, audit=audit)
    if args.kind == "questions":
        with output.text_file(args.out) as file:
            _questions((item for build in DOCUMENTS.values() for item in build(deployment, {}).unanswered), file)
        return 0
    document = _document(args, config, deployment, about)
    asked = [*document.items, *(item for build in DOCUMENTS.values() for item in build(deployment, {}).items)]
    unknown = sorted(about.keys() - {item.name for item in asked})
    if unknown:
        raise ParameterError(
            "HB116", f"{args.about} answers {unknown[0]!r}, which no document asks.", "Run: hubbub report questions"
        )
    if args.json:
        console.print_json(json.dumps(document.to_json(), ensure_ascii=False))
    elif args.out is None:
        console.print(forms.markdown(document), markup=False, soft_wrap=True, end="")
    else:
        forms.write(document, Path(args.out), _key(config))
        open_questions = len(document.unanswered)
        left = f"; {open_questions} questions are not answered" if open_questions else ""
        console.print(f"Wrote {escape(args.out)}{left}.")
    return 0


def _document(
    args: argparse.Namespace, config: "Config", deployment: "Deployment", about: Mapping[str, str]
) -> "Document":
    from hubbub.reports.assessments import DOCUMENTS
    from hubbub.reports.checklist import checklist, read_release

    if args.kind != "checklist":
        return DOCUMENTS[args.kind](deployment, about)
    if args.release is None:
        raise ParameterError("HB136", "No release was given.", "Pass --release 17; `hubbub audit ledger` lists them.")
    return checklist(deployment, read_release(config, args.release), about)


def _questions(items: Iterable["DocumentItem"], file: TextIO) -> None:
    asked = {item.name: item.question for item in items}
    file.write("# What only people can answer. Fill in texts, and pass the file with --about.\n")
    for name, question in asked.items():
        file.write(f"\n# {question}\n{name}:\n")


def _about(path: str | None) -> Mapping[str, str]:
    from hubbub.config.document import expect_mapping, parse_yaml

    if path is None:
        return {}
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise ParameterError("HB129", f"{path} cannot be read.", "Write one with: hubbub report questions") from None
    given = expect_mapping(parse_yaml(text), path)
    return {str(name): str(answer) for name, answer in given.items() if answer is not None}


def _audit(path: str | None, config: "Config") -> dict[str, Any] | None:
    from hubbub.audit.report import load_public_keys, public_key_path, verify_report

    if path is None:
        return None
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise ParameterError(
            "HB129", f"{path} cannot be read.", "Write one with: hubbub audit self --out FILE"
        ) from None
    return verify_report(text, load_public_keys(public_key_path(_key(config))))


def _key(config: "Config") -> Path:
    from hubbub.curator.opening import folder_of

    return folder_of(config) / "audit.key"


def _time(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ParameterError("HB136", f"{text!r} is not a time.", "Write 2026-01-31 or 2026-01-31T12:00.") from None
    return moment.replace(tzinfo=moment.tzinfo or UTC)
