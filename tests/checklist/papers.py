"""docs/papers.md: the founding papers section by section, with the commands and the figures that were recorded."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.checklist.commands import COMMANDS
from tests.checklist.errata import ERRATA, Erratum
from tests.checklist.record import Paper, Row, shown
from tests.checklist.rows import ROWS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "papers.md"
FIGURES = Path(__file__).parent / "figures.json"

Recorded = Mapping[str, Mapping[str, str]]

INTRODUCTION = """# The founding papers, section by section

What the five papers say that hubbub was built from, where each construct is found here, and what we measured: the
command that a user types and the figure that it printed. `make checklist` runs every command again and compares its
figures (`make checklist ARGS="--row 61"` runs one); `make papers` writes this page. The commands run in a folder with
the tables and the hubbub.yaml of `tests/checklist/data` and the health data of `hubbub demo`.

Where a statement is wrong or ambiguous in print, hubbub implements the corrected form, and a test shows that the
corrected form holds and that the printed one fails. Each paper ends with a list of them.
"""


@dataclass(frozen=True)
class Source:
    """A paper: how it is cited, and its sections in order."""

    authors: str
    title: str
    sections: Mapping[str, str]


PAPERS: dict[Paper, Source] = {
    "2005": Source(
        "Chawla, Dwork, McSherry, Smith and Wee 2005",
        "Toward privacy in public databases",
        {
            "1": "1 Introduction",
            "1.2": "1.2 Related work",
            "2": "2 A formal definition of privacy",
            "3": "3 Definition of sanitization",
            "4": "4 Histograms",
            "4.1": "4.1 Simplifying the adversary",
            "4.2": "4.2 Proof of Proposition 2",
            "5": "5 Round perturbation sanitizations",
            "5.1": "5.1 Results for round sanitizers",
            "5.2": "5.2 Learning mixtures of Gaussians",
            "6": "6 Cross-training",
            "7": "7 Future work",
        },
    ),
    "2006": Source(
        "Dwork, McSherry, Nissim and Smith 2006",
        "Calibrating noise to sensitivity in private data analysis",
        {
            "1": "1 Introduction",
            "1.2": "1.2 Related work",
            "2": "2 Definitions",
            "3": "3 Sensitivity and privacy",
            "3.1": "3.1 Calibrating noise according to S(f)",
            "3.2": "3.2 Specific insensitive functions",
            "3.3": "3.3 Sensitivity in general metric spaces",
            "4": "4 Separating interactive mechanisms from non-interactive ones",
            "4.1": "4.1 A stronger separation for randomized response schemes",
            "4.2": "4.2 Proving the separation results",
            "A": "A Semantically flavored implications of Definition 1",
        },
    ),
    "slides": Source(
        "Lecture slides on the Laplace mechanism",
        "differential privacy, after Dwork and Roth 2014",
        {
            "definition": "Differential privacy",
            "sensitivity": "Sensitivity of a function",
            "distribution": "Laplace distribution",
            "mechanism": "Laplace mechanism",
            "accuracy": "Accuracy",
            "notes": "Notes",
            "applying": "Applying the Laplace mechanism",
            "example": "Example: the most-liked page",
            "noisy max": "reportNoisyMax",
        },
    ),
    "2011": Source(
        "Dwork 2011",
        "A firm foundation for private data analysis",
        {
            "how": "“How” is hard",
            "what": "“What” is hard",
            "dalenius": "Dalenius's desideratum",
            "privacy": "Differential privacy",
            "achieving": "Achieving differential privacy",
            "selection": "When noise makes no sense",
            "programs": "When sensitivity is hard to analyze",
            "synthetic": "Generating synthetic data",
            "pan-privacy": "Pan-privacy",
            "geometry": "The geometry of differential privacy",
        },
    ),
    "2014": Source(
        "Kasiviswanathan and Smith 2014",
        "On the “semantics” of differential privacy: a Bayesian formulation",
        {
            "1": "1 Introduction",
            "1.1": "1.1 Differential privacy",
            "2": "2 Semantics of differential privacy",
            "3.1": "3.1 Properties of indistinguishability",
            "3.2": "3.2 Proof of Theorem 2.2",
            "3.3": "3.3 The conditioning lemma",
            "3.4": "3.4 Proof of Theorem 2.4",
            "4": "4 Further discussion",
            "A.1": "Appendix 1.1: Proof of Lemma 3.3",
            "A.2": "Appendix 1.2: Another view of semantic privacy",
        },
    ),
}


def page(recorded: Recorded) -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, *(line for paper in PAPERS for line in _paper(paper, recorded))]).rstrip() + "\n"


def _paper(paper: Paper, recorded: Recorded) -> Iterator[str]:
    source = PAPERS[paper]
    yield from (f"## {source.authors}", "", f"*{source.title[0].upper()}{source.title[1:]}.*", "")
    for key, title in source.sections.items():
        rows = [row for row in COMMANDS.values() if any((at.paper, at.section) == (paper, key) for at in row.places)]
        if rows:
            yield from (f"### {title}", "")
            for row in sorted(rows, key=lambda row: row.number):
                yield from _row(row, paper, key, recorded)
    errata = [erratum for erratum in ERRATA if erratum.paper == paper]
    if errata:
        yield from (
            "### Wrong or ambiguous in print",
            "",
            "| place | in print | what holds | rows |",
            "|---|---|---|---|",
        )
        yield from (_erratum(erratum) for erratum in errata)
        yield ""


def _row(row: Row, paper: Paper, key: str, recorded: Recorded) -> Iterator[str]:
    """Describe a row where it is cited first; elsewhere, refer to that place."""
    place = next(place for place in row.places if (place.paper, place.section) == (paper, key))
    label = f" ({place.label})" if place.label else ""
    if place != row.places[0]:
        yield from (f"{ROWS[row.number]}{label}: [row {row.number}](#row-{row.number}).", "")
        return
    lives = f" Here: {row.lives}." if row.lives else ""
    yield from (f'<a id="row-{row.number}"></a>**{row.number}. {ROWS[row.number]}**{label}. {row.says}{lives}', "")
    if not row.command:
        yield from ("Open: no command reaches it yet.", "")
        return
    yield from (f"```{'python' if row.language == 'python' else ''}", row.command.strip(), "```", "")
    for figure in row.figures:
        seen = shown(recorded.get(str(row.number), {}).get(figure.name, "not measured"))
        yield f"- {figure.name}: **{seen}**; expected {figure.target} ({figure.source})"
    yield ""


def _erratum(erratum: Erratum) -> str:
    rows = ", ".join(f"[{number}](#row-{number})" for number in erratum.rows)
    return f"| {erratum.place} | {_cell(erratum.printed)} | {_cell(erratum.holds)} | {rows} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def recorded_figures() -> Recorded:
    """The figures of the last run of `make papers`."""
    figures: Recorded = json.loads(FIGURES.read_text())
    return figures
