"""The data sheet of a published release: query, accuracy, privacy cost, method and verification.

It is computed from the release and its receipt only, so it reveals no more about the data than they do.

Tested in tests/answers/test_publish.py.
"""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from typing import Any, Literal

from hubbub.answers.release import Output, Release
from hubbub.core.events import Composed, Event, from_facts, stored_name
from hubbub.core.numbers import brief
from hubbub.core.odds import consequence, rise
from hubbub.core.unit import period_guarantee

#: How each analysis computes its numbers; "query" is a SQL query.
METHODS: Mapping[str, str] = {
    "query": "Every sum and count was computed exactly over the bounded contributions of each unit. Random noise with a"
    " known distribution was then added to each. Averages and ratios were computed from noisy sums.",
    "tabulate": "The cells were counted exactly over the bounded contributions of each unit. Random noise was added to"
    " the table and to some of its marginals, with a budget allocation that keeps the mean variance over all published"
    " tables small. All published numbers were then estimated jointly from these measurements by least squares, without"
    " negative cells, and rounded so that every marginal is the sum of the published cells.",
    "ranges": "The bins were counted exactly over the bounded contributions of each unit. Random noise was added to"
    " weighted sums of bins chosen for the whole workload (the matrix mechanism, with integer weights). The bins were"
    " then estimated by least squares without negative counts, and rounded so that every running total changes by at"
    " most half a count.",
    "geography": "The smallest areas were counted exactly over the bounded contributions of each unit and aggregated"
    " level by level. Random noise was added at every level. The counts were then estimated by least squares over all"
    " levels, and made whole and non-negative from the total down, so that the parts of an area add up to it.",
    "synthetic": "The categories of every column were counted exactly over the bounded contributions of each unit, and"
    " random noise was added. The exponential mechanism selected the pairs of columns that the model fitted worst,"
    " and these were counted with noise. The rows were sampled from a graphical model (Private-PGM) that was estimated"
    " only from these noisy counts; they describe no real person. The quality report was itself measured with noise.",
    "synthetic_tables": "The categories of every column were counted exactly over the bounded contributions of each"
    " unit: those of people with the number of their rows, and those of a few rows of each with the columns of their"
    " person. Random noise was added, the exponential mechanism selected the pairs of columns that the models fitted"
    " worst, and these were counted with noise. People were sampled from one graphical model, and their rows from"
    " another, given what the person is like; they describe no real person.",
    "mwem": "The exponential mechanism selected tables of a few columns that a distribution over all cells fitted"
    " worst. These were counted with Laplace noise, and the distribution was updated by multiplicative weights. The"
    " rows were sampled from it; they describe no real person.",
    "small_database": "The exponential mechanism chose one of all databases of a fixed size, by its largest error over"
    " all conjunctions of values, or over given predicates (Blum, Ligett and Roth). Its rows describe no real person.",
    "median": "The quantile was computed exactly over the bounded contributions of each unit. Random noise was then"
    " added in proportion to how far one unit can move it at this dataset and at similar ones.",
    "random_forest": "The classes were counted exactly in the buckets of each column over the bounded contributions of"
    " each unit, and random noise was added. All splits of all trees were drawn at random from these noisy counts. The"
    " classes in the leaves of each tree were then counted, with random noise. Predictions are means over the trees.",
    "logistic_regression": "The rows were located and their moments measured with random noise. At weights that follow"
    " from earlier noisy answers, sums of (label − probability) times the columns were computed exactly over bounded"
    " contributions of each unit, with random noise, and the weights were moved until these sums would be zero."
    " Intervals, where there are some, are for the coefficients of the same rows without noise.",
    **dict.fromkeys(
        ("min_cut", "spanning_tree", "single_linkage", "graph_distance", "degree_histogram", "triangle_count"),
        "The numbers were computed exactly on the graph of the counted edges. Random noise was then added in proportion"
        " to how far one unit can move them.",
    ),
}
_OTHER = (
    "Only sums over the bounded contributions of each unit were used, each with random noise of a known distribution."
    " Everything else was computed from the noisy numbers."
)
_LEVEL = "95%"


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a sheet: the lines of a heading, text, list or code, the rows of a table, or an SVG figure.

    The first row of a table is its header. A figure repeats numbers of a table, and Markdown leaves it out.
    """

    kind: Literal["heading", "text", "list", "code", "table", "figure"]
    lines: tuple[tuple[str, ...], ...]


def block(kind: Literal["heading", "text", "list", "code", "figure"], *lines: str) -> Block:
    """Make a block of lines."""
    return Block(kind, tuple((line,) for line in lines))


@dataclass(frozen=True, slots=True)
class Sheet:
    """A data sheet, which can be rendered as Markdown or HTML."""

    title: str
    blocks: tuple[Block, ...]

    def markdown(self) -> str:
        """Return the sheet as Markdown."""
        parts = [f"# {_escaped(self.title)}"]
        for each in self.blocks:
            texts = [line[0] for line in each.lines] if each.kind != "table" else []
            if each.kind == "heading":
                parts.append(f"## {_escaped(texts[0])}")
            elif each.kind == "text":
                parts += map(_escaped, texts)
            elif each.kind == "list":
                parts.append("\n".join(f"- {_escaped(text)}" for text in texts))
            elif each.kind == "figure":
                continue
            elif each.kind == "code":
                parts.append("\n".join(f"    {line}" for text in texts for line in text.splitlines()))
            else:
                head, *rows = each.lines
                ruled = ["| " + " | ".join(map(_escaped, row)) + " |" for row in (head, *rows)]
                parts.append("\n".join([ruled[0], "|" + "---|" * len(head), *ruled[1:]]))
        return "\n\n".join(parts) + "\n"

    def page(self) -> str:
        """Return the sheet as a self-contained HTML page."""
        parts = [f"<h1>{html.escape(self.title)}</h1>"]
        for each in self.blocks:
            texts = [html.escape(line[0]) for line in each.lines] if each.kind != "table" else []
            if each.kind == "heading":
                parts.append(f"<h2>{texts[0]}</h2>")
            elif each.kind == "figure":
                parts += [line[0] for line in each.lines]
            elif each.kind == "text":
                parts += [f"<p>{text}</p>" for text in texts]
            elif each.kind == "list":
                parts.append("<ul>" + "".join(f"<li>{text}</li>" for text in texts) + "</ul>")
            elif each.kind == "code":
                parts += [f"<pre>{text}</pre>" for text in texts]
            else:
                rows = [
                    "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row) + "</tr>"
                    for tag, row in zip(["th", *["td"] * len(each.lines)], each.lines, strict=False)
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


def _escaped(text: str) -> str:
    r"""Escape the special characters of Markdown.

    >>> print(_escaped("a|b_c *d*"))
    a\|b\_c \*d\*
    """
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]<>|#" else sign for sign in " ".join(text.split()))


def sheet(release: Release, *, title: str, files: Sequence[tuple[str, str]] = (), notes: str | None = None) -> Sheet:
    """Create the data sheet of a release; `files` are names with their SHA-256."""
    receipt = release.receipt
    if not release.epsilon:
        return Sheet(title, tuple(_public_blocks(release, files, notes)))
    receipt_file = next((name for name, _ in files if name.endswith(".json")), "NAME.receipt.json")
    blocks = [
        *([block("text", notes)] if notes else []),
        block("heading", "Query"),
        block("code", str(receipt.get("query", ""))),
        block("text", f"Released{_when(receipt)} from {_sources(receipt)}."),
        block("heading", "Columns"),
        _columns(release),
        block("heading", "Accuracy"),
        *_errors(release),
        *([block("text", release.left_out.sentence())] if release.left_out is not None else []),
        *(block("text", note) for note in release.notes),
        block("heading", "Privacy cost"),
        block("list", *cost_facts(release)),
        block("heading", "Privacy guarantee"),
        block("text", *_guarantee(receipt)),
        block("heading", "Method"),
        block("text", method_of(release.analysis)),
        *([block("list", *map(str, receipt["derivation"]))] if receipt.get("derivation") else []),
        block("heading", "Verification"),
        block(
            "text",
            "The receipt contains every fact that is needed to recompute the privacy loss without the data, and a hash"
            f" of the answer. Run hubbub verify {receipt_file} to check both.",
        ),
    ]
    if files:
        blocks.append(Block("table", (("File", "SHA-256"), *files)))
    return Sheet(title, tuple(blocks))


def _public_blocks(release: Release, files: Sequence[tuple[str, str]], notes: str | None) -> list[Block]:
    """Describe an exact answer from public tables, which promises nothing about privacy."""
    blocks = [
        *([block("text", notes)] if notes else []),
        block("heading", "Query"),
        block("code", str(release.receipt.get("query", ""))),
        block(
            "text",
            f"Answered exactly from {_sources(release.receipt)}. All of these tables are public: no noise was"
            " added, nothing was charged, and there is no receipt to verify.",
        ),
    ]
    return [*blocks, Block("table", (("File", "SHA-256"), *files))] if files else blocks


def _when(receipt: Mapping[str, Any]) -> str:
    times = [charge["time"] for charge in receipt.get("ledger", ()) if charge.get("time") is not None]
    if not times:
        return ""
    return f" on {datetime.fromtimestamp(max(times) // 1_000_000, UTC):%Y-%m-%d}"


def _sources(receipt: Mapping[str, Any]) -> str:
    sources = [f"{data['dataset']} (version {data['version']})" for data in receipt.get("data", ())]
    return ", ".join(sources) or "private data"


def _columns(release: Release) -> Block:
    label = (
        "public label" if any(output.low is not None for output in release.outputs) else "computed from noisy numbers"
    )
    rows = [
        (output.name, output.kind, label if output.low is None else f"noisy, with a {_LEVEL} interval")
        for output in release.outputs
    ]
    return Block("table", (("Column", "Type", f"Content ({len(release.ratio):,} rows)"), *rows))


def _errors(release: Release) -> list[Block]:
    noisy = [output for output in release.outputs if output.low is not None]
    if not noisy:
        return [block("text", "No column has an interval. The estimate of the query states the expected error.")]
    parts = _parts(release)
    rows = [(part, output.name, *_widths(output, indexes)) for part, indexes in parts for output in noisy]
    head = ("Table" if len(parts) > 1 else "", "Column", "Typical ±", "Largest ±", "Values")
    return [
        block(
            "text",
            f"The data files list each noisy number with the ends of its {_LEVEL} confidence interval (name_low,"
            f" name_high): in {_LEVEL} of cases, the number without noise lies between them. The intervals cover the"
            " privacy noise only; they do not include sampling error.",
        ),
        Block("table", (head, *rows)),
    ]


def _parts(release: Release) -> list[tuple[str, list[int]]]:
    """Split the rows by the first column if it is a text column with few distinct values."""
    first = release.outputs[0]
    names = list(dict.fromkeys(map(str, first.values)))
    if first.low is not None or first.kind != "text" or not 1 < len(names) <= 32 or 3 * len(names) > len(first.values):
        return [("", list(range(len(release.ratio))))]
    parts: dict[str, list[int]] = {name: [] for name in names}
    for index, name in enumerate(first.values):
        parts[str(name)].append(index)
    return list(parts.items())


def _widths(output: Output, indexes: Sequence[int]) -> tuple[str, str, str]:
    low, high = output.low or (), output.high or ()
    # the upper half of an interval that is clamped at zero shows its width
    widths = [
        max(end - float(value), (end - start) / 2)
        for value, start, end in ((output.values[i], low[i], high[i]) for i in indexes)
        if start is not None and end is not None and isinstance(value, int | float)
    ]
    if not widths:
        return "–", "–", str(len(indexes))
    return f"{median(widths):.4g}", f"{max(widths):.4g}", f"{len(indexes):,}"


def method_of(analysis: str) -> str:
    """Say how an analysis computes its numbers; "query" is a SQL query."""
    return METHODS.get(analysis, _OTHER)


def cost_facts(release: Release) -> list[str]:
    """State the privacy cost, what it means, and the mechanisms."""
    facts = [f"ε = {brief(release.epsilon)}, δ = {brief(release.delta)}"]
    if release.epsilon:
        facts.append(f"The odds of any fact about one unit {rise(epsilon=release.epsilon, delta=release.delta)}")
        facts.append(consequence(epsilon=release.epsilon, delta=release.delta).removesuffix("."))
    event = release.receipt.get("event")
    return facts + ([_mechanisms(from_facts(event))] if event else [])


def _mechanisms(event: Event) -> str:
    parts = event.parts if isinstance(event, Composed) else ((event, 1),)
    kinds: dict[str, int] = {}
    for part, count in parts:
        name = stored_name(part)
        kinds[name] = kinds.get(name, 0) + count
    counts = ", ".join(f"{count} × {name}" for name, count in kinds.items())
    return f"Mechanisms applied to the data: {counts}"


def protected(receipt: Mapping[str, Any]) -> list[str]:
    """State the privacy unit of each dataset, and what it means."""
    whose: dict[str, list[str]] = {}
    for data in receipt.get("data", ()):
        whose.setdefault(data["unit"], []).append(data["dataset"])
    change = "replaced by another" if receipt.get("relation") == "replace" else "added or removed"
    after = f"The release would look nearly the same if one such unit were {change}."
    of = {column: f" of {', '.join(names)}" if len(whose) > 1 else "" for column, names in whose.items()} or {"row": ""}
    return [f"The privacy unit{names} is {_unit(column)}. {after}" for column, names in of.items()]


def _unit(column: str) -> str:
    period = period_guarantee(column)
    if period:
        return f"all rows of one {column}: {period}"
    return "a single row" if column == "row" else f"all rows with the same value of {column}"


def _guarantee(receipt: Mapping[str, Any]) -> list[str]:
    facts = protected(receipt)
    bounds = receipt.get("bounds")
    if bounds and "auto" in bounds:
        facts.append(
            "How much of each unit counts was found privately, as part of the query, and is stated with the answer."
        )
    elif bounds:
        facts.append(
            f"Each unit contributes to at most {bounds['groups']} groups, with at most {bounds['rows']} rows in each."
            " Excess rows are truncated, which biases counts downward where units have more."
        )
    return facts
