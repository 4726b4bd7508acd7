"""The data sheet of what is published: what was measured, how exact each number is, what it cost, how it was made.

Everything in it comes from the release and its receipt, so it says no more about the data than the release does.
"""

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from typing import Any, Literal

from hubbub.answers.release import Output, Release
from hubbub.core.events import Composed, Event, from_facts, stored_name
from hubbub.core.numbers import brief

#: How each analysis makes its numbers, for people; a query is "query".
METHODS: Mapping[str, str] = {
    "query": "Every sum and count was computed exactly over the bounded contributions of each unit. Random noise with a"
    " known distribution was added to each before it left the curator; averages and ratios are made of noisy sums.",
    "tabulate": "The cells were counted exactly over the bounded contributions of each unit. Random noise was added to"
    " the table and to some of its marginals, sharing the privacy budget so that the mean variance over all published"
    " tables is small. All published numbers were then estimated from these measurements together by least squares,"
    " without negative cells, and rounded so that every marginal is the sum of the published cells.",
    "ranges": "The bins were counted exactly over the bounded contributions of each unit. Random noise was added to"
    " weighted sums of bins that were chosen for the whole workload (the matrix mechanism, with integer weights). The"
    " bins were then estimated by least squares without negative counts, and rounded so that every running total is"
    " off by half a count at most.",
    "geography": "The smallest places were counted exactly over the bounded contributions of each unit and added up"
    " level by level. Random noise was added at every level. The counts were then estimated by least squares over all"
    " levels, and made whole and not negative from the total down, so that the places inside a place add up to it.",
    "synthetic": "The categories of every column were counted exactly over the bounded contributions of each unit, and"
    " random noise was added. Pairs of columns were selected by the exponential mechanism, each for how wrong a model"
    " was about it, and counted with noise. The rows were drawn from a graphical model (Private-PGM) that was estimated"
    " from these noisy counts alone; they are nobody's. The report on their quality was itself measured with noise.",
    "mwem": "Tables of a few columns were selected by the exponential mechanism, each for how wrong a distribution over"
    " all cells was about it, and counted with Laplace noise; the distribution was mended by multiplicative weights."
    " The rows were drawn from it; they are nobody's.",
    "small_database": "Of all databases of so many rows one was chosen by the exponential mechanism, by its largest"
    " error over all conjunctions of values (Blum, Ligett and Roth). Its rows are nobody's.",
}
_OTHER = (
    "Only sums over the bounded contributions of each unit were used, each with random noise of a known distribution; everything"
    " after that was computed from the noisy numbers alone."
)
_LEVEL = "95%"


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a sheet: lines of a heading, a text, a list or a code; of a table, a row each, its head first."""

    kind: Literal["heading", "text", "list", "code", "table"]
    lines: tuple[tuple[str, ...], ...]


def _block(kind: Literal["heading", "text", "list", "code"], *lines: str) -> Block:
    return Block(kind, tuple((line,) for line in lines))


@dataclass(frozen=True, slots=True)
class Sheet:
    """A data sheet, which can be written as Markdown or as a page."""

    title: str
    blocks: tuple[Block, ...]

    def markdown(self) -> str:
        """Write it as Markdown."""
        parts = [f"# {_marked(self.title)}"]
        for block in self.blocks:
            texts = [line[0] for line in block.lines] if block.kind != "table" else []
            if block.kind == "heading":
                parts.append(f"## {_marked(texts[0])}")
            elif block.kind == "text":
                parts += map(_marked, texts)
            elif block.kind == "list":
                parts.append("\n".join(f"- {_marked(text)}" for text in texts))
            elif block.kind == "code":
                parts.append("\n".join(f"    {line}" for text in texts for line in text.splitlines()))
            else:
                head, *rows = block.lines
                ruled = ["| " + " | ".join(map(_marked, row)) + " |" for row in (head, *rows)]
                parts.append("\n".join([ruled[0], "|" + "---|" * len(head), *ruled[1:]]))
        return "\n\n".join(parts) + "\n"

    def page(self) -> str:
        """Write it as a page of HTML that needs nothing else."""
        parts = [f"<h1>{html.escape(self.title)}</h1>"]
        for block in self.blocks:
            texts = [html.escape(line[0]) for line in block.lines] if block.kind != "table" else []
            if block.kind == "heading":
                parts.append(f"<h2>{texts[0]}</h2>")
            elif block.kind == "text":
                parts += [f"<p>{text}</p>" for text in texts]
            elif block.kind == "list":
                parts.append("<ul>" + "".join(f"<li>{text}</li>" for text in texts) + "</ul>")
            elif block.kind == "code":
                parts += [f"<pre>{text}</pre>" for text in texts]
            else:
                rows = [
                    "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row) + "</tr>"
                    for tag, row in zip(["th", *["td"] * len(block.lines)], block.lines, strict=False)
                ]
                parts.append("<table>" + "".join(rows) + "</table>")
        return _PAGE.format(title=html.escape(self.title), body="\n".join(parts))


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; margin: 1rem 0; }} th, td {{ border: 1px solid #bbb; padding: .2rem .6rem;
text-align: left; }} pre {{ white-space: pre-wrap; overflow-wrap: anywhere; background: #f3f3f3; padding: .6rem; }}
</style></head><body>
{body}
</body></html>
"""


def _marked(text: str) -> str:
    r"""Keep Markdown from reading signs into a text.

    >>> print(_marked("a|b_c *d*"))
    a\|b\_c \*d\*
    """
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]<>|#" else sign for sign in " ".join(text.split()))


def sheet(release: Release, *, title: str, files: Sequence[tuple[str, str]] = (), notes: str | None = None) -> Sheet:
    """Write the data sheet of a release; `files` are names with their SHA-256."""
    receipt = release.receipt
    blocks = [
        *([_block("text", notes)] if notes else []),
        _block("heading", "What was asked"),
        _block("code", str(receipt.get("query", ""))),
        _block("text", f"Released {_when(receipt)} from {_sources(receipt)}."),
        _block("heading", "What is in it"),
        _columns(release),
        _block("heading", "How exact it is"),
        *_errors(release),
        _block("heading", "What it cost"),
        _block("list", *_cost(release)),
        _block("heading", "Who is protected"),
        _block("text", *_protected(receipt)),
        _block("heading", "How it was made"),
        _block("text", METHODS.get(str(receipt.get("analysis", "query")), _OTHER)),
        *([_block("list", *map(str, receipt["derivation"]))] if receipt.get("derivation") else []),
        _block("heading", "How to check it"),
        _block(
            "text",
            "The receipt holds every fact from which the privacy loss can be derived again without the data, and a hash"
            " of the answer: hubbub verify NAME.receipt.json does both.",
        ),
    ]
    if files:
        blocks.append(Block("table", (("file", "SHA-256"), *files)))
    return Sheet(title, tuple(blocks))


def _when(receipt: Mapping[str, Any]) -> str:
    times = [each["time"] for each in receipt.get("ledger", ()) if each.get("time") is not None]
    if not times:
        return "once"
    return f"on {datetime.fromtimestamp(max(times) // 1_000_000, UTC):%Y-%m-%d}"


def _sources(receipt: Mapping[str, Any]) -> str:
    found = [f"{each['dataset']} (version {each['version']})" for each in receipt.get("data", ())]
    return ", ".join(found) or "private data"


def _columns(release: Release) -> Block:
    label = (
        "a label, public before" if any(each.low is not None for each in release.outputs) else "made of noisy numbers"
    )
    rows = [
        (each.name, each.kind, label if each.low is None else f"noisy, with a {_LEVEL} interval")
        for each in release.outputs
    ]
    return Block("table", (("column", "kind", f"{len(release.ratio):,} rows"), *rows))


def _errors(release: Release) -> list[Block]:
    noisy = [each for each in release.outputs if each.low is not None]
    if not noisy:
        return [
            _block("text", "No column carries an interval; what error to expect is said above, or was before asking.")
        ]
    parts = _parts(release)
    rows = [(part, each.name, *_widths(each, places)) for part, places in parts for each in noisy]
    head = ("table" if len(parts) > 1 else "", "column", "typical ±", "largest ±", "numbers")
    return [
        _block(
            "text",
            f"Each noisy number stands with the ends of its {_LEVEL} interval in the data files (name_low, name_high):"
            " in 19 of 20 cases the number that noise was added to lies between them. They hold the error that privacy"
            " adds, and not that of a sample.",
        ),
        Block("table", (head, *rows)),
    ]


def _parts(release: Release) -> list[tuple[str, list[int]]]:
    """Split the rows by what a first column of a few texts says, where there is one."""
    first = release.outputs[0]
    names = list(dict.fromkeys(map(str, first.values)))
    if first.low is not None or first.kind != "text" or not 1 < len(names) <= 32 or 3 * len(names) > len(first.values):
        return [("", list(range(len(release.ratio))))]
    found: dict[str, list[int]] = {name: [] for name in names}
    for place, name in enumerate(first.values):
        found[str(name)].append(place)
    return list(found.items())


def _widths(output: Output, places: Sequence[int]) -> tuple[str, str, str]:
    low, high = output.low or (), output.high or ()
    # an interval that is cut at zero tells its width by its upper half
    widths = [
        max(end - float(value), (end - start) / 2)
        for value, start, end in ((output.values[i], low[i], high[i]) for i in places)
        if start is not None and end is not None and isinstance(value, int | float)
    ]
    if not widths:
        return "–", "–", str(len(places))
    return f"{median(widths):.4g}", f"{max(widths):.4g}", f"{len(places):,}"


def _cost(release: Release) -> list[str]:
    epsilon = float(release.epsilon)
    said = [f"ε = {brief(release.epsilon)}" + (f", δ = {brief(release.delta)}" if release.delta else ", and no δ")]
    if epsilon <= 20:
        said.append(
            f"whatever anybody believed about one unit, its odds change by a factor of at most {math.exp(epsilon):.3g}"
            + (f", but for a chance of about {brief(release.delta)}" if release.delta else "")
        )
    event = release.receipt.get("event")
    return said + ([_drawn(from_facts(event))] if event else [])


def _drawn(event: Event) -> str:
    parts = event.parts if isinstance(event, Composed) else ((event, 1),)
    kinds: dict[str, int] = {}
    for part, count in parts:
        name = stored_name(part)
        kinds[name] = kinds.get(name, 0) + count
    said = ", ".join(f"{count} × {name}" for name, count in kinds.items())
    return f"mechanisms that drew on the data: {said}"


def _protected(receipt: Mapping[str, Any]) -> list[str]:
    units = {each["unit"] for each in receipt.get("data", ())}
    column = next(iter(units), "row")
    who = "Each row by itself" if column == "row" else f"Each value of {column}, with all rows that it has,"
    replaced = receipt.get("relation") == "replace"
    change = "replaced by another" if replaced else "added or taken away"
    said = [f"{who} is protected: what is published would look nearly the same if one such unit were {change}."]
    bounds = receipt.get("bounds")
    if bounds:
        said.append(
            f"Of each unit at most {bounds['groups']} groups and {bounds['rows']} rows in each count; what is beyond is"
            " left out, which biases counts downwards where units have more."
        )
    return said
