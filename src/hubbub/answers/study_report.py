"""The document of a study: its answers with intervals, and a methods section made from the receipt.

It is computed from the plan file and the release only, so it reveals no more about the data than they do.

Tested in tests/curator/test_study.py.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from hubbub.answers.bars import bars
from hubbub.answers.release import Release
from hubbub.answers.sheet import Block, Sheet, block, cost_facts, method_of, protected
from hubbub.answers.study_file import StudyFile, StudyPart
from hubbub.core.numbers import brief

#: Most rows of a table in the document; the answer itself has all of them.
MAX_ROWS = 60


def study_sheet(file: StudyFile, release: Release, answers: Mapping[str, Release]) -> Sheet:
    """Write the document of a study."""
    parts = [each for part in file.parts for each in _part(part, answers[part.name])]
    return Sheet(
        file.title,
        (*([block("text", file.purpose)] if file.purpose else []), *parts, *_methods(file, release, answers)),
    )


def _part(part: StudyPart, answer: Release) -> Iterator[Block]:
    yield block("heading", part.title)
    if part.text:
        yield block("text", part.text)
    shown = answer.head(MAX_ROWS)
    yield Block("table", (answer.columns, *shown.texts()))
    if len(answer.ratio) > MAX_ROWS:
        yield block("text", f"The first {MAX_ROWS} of {len(answer.ratio):,} rows.")
    figure = bars(answer)
    if figure:
        yield block("figure", figure)
    yield from (block("text", note) for note in answer.notes)
    yield block("code", part.query)


def _methods(file: StudyFile, release: Release, answers: Mapping[str, Release]) -> Iterator[Block]:
    receipt = release.receipt
    yield block("heading", "Methods")
    several = len(file.parts) > 1
    yield block(
        "text",
        "All results were released with differential privacy by hubbub. "
        + (f"The {len(file.parts)} parts were planned together, charged once, and run once." if several else ""),
    )
    yield block("text", *protected(receipt))
    yield block("list", *cost_facts(release))
    yield block("list", *_by_part(file, release, answers))
    kinds = dict.fromkeys(answers[part.name].analysis for part in file.parts)
    yield block("list", *(f"{_title(kind)}: {method_of(kind)}" for kind in kinds))
    yield block("heading", "What bounds leave out")
    yield block("list", *_left_out(file.parts, answers))
    yield block("heading", "Intervals")
    yield block("list", *_intervals(file.parts, answers))
    yield block("heading", "How the noise follows from the declarations")
    yield block("list", *(_named(file, str(line)) for line in receipt.get("derivation", ())))
    yield block("heading", "Receipt")
    yield block("list", *_receipt(release))


def _title(kind: str) -> str:
    return "SQL queries" if kind == "query" else kind


def _by_part(file: StudyFile, release: Release, answers: Mapping[str, Release]) -> Iterator[str]:
    """State the share of each part, and its largest planned margin of error."""
    columns = dict(zip(release.columns, release.outputs, strict=True))
    margins = columns["plus_minus"].values if "plus_minus" in columns else [None] * len(file.questions)
    for part in file.parts:
        planned = margins[file.questions.index(part.query)]
        kind = answers[part.name].analysis
        share = f"{part.title}: {_title(kind)}; {float(file.share(part)):.3g} of ε = {brief(release.epsilon)}"
        yield share + (f"; largest planned margin of error ±{planned:.4g}" if isinstance(planned, float | int) else "")


def _left_out(parts: Sequence[StudyPart], answers: Mapping[str, Release]) -> Iterator[str]:
    """State what bounds leave out, together for the parts that say the same."""
    said: dict[str, list[str]] = {}
    for part in parts:
        left_out = answers[part.name].left_out
        said.setdefault("Not stated." if left_out is None else left_out.sentence(), []).append(part.title)
    for sentence, titles in said.items():
        yield sentence if len(said) == 1 else f"{', '.join(titles)}: {sentence}"


def _intervals(parts: Sequence[StudyPart], answers: Mapping[str, Release]) -> Iterator[str]:
    said: dict[str, list[str]] = {}
    for part in parts:
        answer = answers[part.name]
        noisy = any(output.low is not None for output in answer.outputs)
        note = answer.intervals_note if noisy else "no column has an interval"
        said.setdefault(note, []).append(part.title)
    for note, titles in said.items():
        yield note if len(said) == 1 else f"{', '.join(titles)}: {note}"


def _named(file: StudyFile, line: str) -> str:
    """Name the parts of a question that a line is about, instead of its number."""
    found = re.match(r"question (\d+)(?=[:,])", line)
    if found is None:
        return line
    query = file.questions[int(found[1]) - 1]
    return ", ".join(part.title for part in file.parts if part.query == query) + line[found.end() :]


def _receipt(release: Release) -> Iterator[str]:
    receipt = release.receipt
    for data in receipt.get("data", ()):
        yield f"Data: {data['dataset']}, version {data['version']}"
    for charge in receipt.get("ledger", ()):
        yield f"Charge {charge['sequence']} on {charge['dataset']}, ledger entry with hash {charge['hash']}"
    yield f"Hash of the answers: {receipt.get('answer')}"
    yield "Write the receipt with --receipt study.json and check it with: hubbub verify study.json"
