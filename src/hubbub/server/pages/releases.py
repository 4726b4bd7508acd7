"""Release pages: the history of answers, single releases, and their exports. All of it is free.

Tested in tests/server/test_pages.py.
"""

import json
import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from starlette.responses import Response

from hubbub.answers.combine import combine
from hubbub.answers.release import Release
from hubbub.core.events import Event, from_facts
from hubbub.core.numbers import brief
from hubbub.core.odds import factor, rise, three_digits, times
from hubbub.core.unit import period_guarantee
from hubbub.errors import ParameterError
from hubbub.semantics.pointwise import exceedance_of
from hubbub.server.pages.frame import VERSION, Visit
from hubbub.server.problems import not_found

_PAGE = 25
_FORMULA = frozenset("=+-@\t\r")
_MARKUP = re.compile(r"([\\`*_\[\]<>!#$&|~:])")
_NOISE_NAMES = {"gaussian": "Gaussian", "laplace": "Laplace", "geometric": "two-sided geometric"}


def index(visit: Visit) -> Response:
    """Show the history, newest first."""
    given = visit.request.query_params.get("before", "")
    before = number_of(given) if given else None
    charges = visit.service.catalog.releases(visit.principal, limit=_PAGE + 1, before=before)
    shown = charges[:_PAGE]
    return visit.render("releases.html", releases=shown, next=shown[-1].id if len(charges) > _PAGE else None)


def show(visit: Visit) -> Response:
    """Show one release, or two combined."""
    numbers = visit.request.path_params["numbers"]
    release = fetch(visit, numbers)
    if visit.request.query_params.get("intervals") == "joint":
        release = release.jointly()
    combined = "combined" in release.receipt
    seen = () if combined or visit.principal.role == "analyst" else (number_of(numbers),)
    actions = [each for number in seen for each in visit.service.publications.actions(visit.principal, release=number)]
    return visit.render(
        "release.html",
        release=release,
        numbers=numbers,
        combined=combined,
        joinable=any(output.joint is not None for output in release.outputs),
        methods=methods(release),
        publications=actions,
        comments=None if combined else visit.service.comments.list(visit.principal, number_of(numbers)),
    )


def comment(visit: Visit) -> Response:
    """Comment on a release."""
    number = visit.request.path_params["number"]
    visit.service.comments.add(visit.principal, number, visit.form.get("text", ""))
    return visit.go(f"/releases/{number}#comments", "commented")


def remove_comment(visit: Visit) -> Response:
    """Remove a comment."""
    release = visit.service.comments.remove(visit.principal, number_of(visit.form.get("comment", "")))
    return visit.go(f"/releases/{release}#comments", "uncommented")


def export(visit: Visit) -> Response:
    """Download a release as a file."""
    numbers, form = visit.request.path_params["numbers"], visit.request.path_params["form"]
    release = fetch(visit, numbers)
    content: str | bytes
    if form == "csv":
        content, kind = without_formulas(release).to_csv(), "text/csv; charset=utf-8"
    elif form == "json":
        content, kind = json.dumps(release.document(), ensure_ascii=False, indent=1), "application/json"
    elif form == "parquet":
        content, kind = parquet(release), "application/vnd.apache.parquet"
    elif form == "ipynb":
        content, kind = json.dumps(notebook(release, numbers), ensure_ascii=False, indent=1), "application/x-ipynb+json"
    else:
        raise not_found("export of this format")
    disposition = f'attachment; filename="release-{numbers}.{form}"'
    return Response(content, media_type=kind, headers={"Content-Disposition": disposition})


def parquet(release: Release) -> bytes:
    """Return all rows as a Parquet file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "release.parquet"
        release.export(path)
        return path.read_bytes()


def without_formulas(release: Release) -> Release:
    """Put an apostrophe before text that a spreadsheet would run as a formula."""
    return replace(
        release,
        outputs=tuple(
            replace(
                output,
                name=_text(output.name),
                values=[_text(cell) for cell in output.values] if output.kind == "text" else output.values,
            )
            for output in release.outputs
        ),
    )


def _text(cell: Any) -> Any:
    return f"'{cell}" if str(cell)[:1] in _FORMULA else cell


def _plain(text: str) -> str:
    """Escape a text for Markdown, so that a query cannot become a link or an image."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def fetch(visit: Visit, numbers: str) -> Release:
    """Return a release by its number, or two combined, as in 17-23."""
    first, dash, second = numbers.partition("-")
    release = visit.service.catalog.release(visit.principal, number_of(first))
    return combine(release, visit.service.catalog.release(visit.principal, number_of(second))) if dash else release


def number_of(text: str) -> int:
    """Read the number of a release from an address."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise ParameterError("HB164", "There is no release with this number.", "Check the list of releases.")
    return int(text)


def methods(release: Release) -> str:
    """Return a paragraph for the methods section of a paper."""
    parts = release.receipt.get("combined", [release.receipt])
    first = parts[0]
    units = ", ".join(
        f"each {data['unit']} of {data['dataset']} (data version {data['version']})" for data in first["data"]
    )
    periods = sorted({words for data in first["data"] if (words := period_guarantee(data["unit"]))})
    units += "".join(f"; {words}" for words in periods)
    limits = "" if release.left_out is None else f" {release.left_out.sentence()}"
    limits += "".join(f" {note}" for note in release.notes)
    relation = {"add_remove": "added or removed", "replace": "replaced"}[first["relation"]]
    draws = [draw for part in parts for draw in part.get("draws", ())]
    noises = " and ".join(sorted({_NOISE_NAMES.get(_mechanism(draw), "selection") for draw in draws}))
    cost = f"ε = {brief(release.epsilon)}" + (f", δ = {brief(release.delta)}" if release.delta else "")
    entries = ", ".join(f"{each['sequence']} (hash {each['hash'][:16]})" for each in release.receipt["ledger"])
    odds = f" The odds of any fact about one unit {rise(epsilon=release.epsilon, delta=release.delta)}."
    if release.delta:
        odds += _exceedance([from_facts(part["event"]) for part in parts], release.epsilon)
    if "derived" in first:
        return (
            f"The results answer the query “{first['query']}”. The privacy unit is {units}; neighboring datasets differ"
            f" by one unit being {relation}.{limits} Nothing was drawn: the results are a weighted sum of released"
            f" ones. Intervals: {release.intervals_note}. The answer is ledger entry {entries}."
        )
    combined = " Two independent releases were combined with inverse-variance weights." if len(parts) > 1 else ""
    return (
        f"The results answer the query “{first['query']}” and are differentially private with {cost}."
        f" The privacy unit is {units}; neighboring datasets differ by one unit being {relation}.{odds}{limits}"
        f" Noise{f' ({noises})' if noises else ''} was sampled exactly by hubbub {VERSION}.{combined} Intervals:"
        f" {release.intervals_note}. The charge is ledger entry {entries}."
    )


def _exceedance(events: Sequence[Event], epsilon: Fraction) -> str:
    """State how often the noise at hand moves odds by more than e^ε."""
    at, chance = exceedance_of(events, epsilon=epsilon)
    return (
        f" With this noise, the odds of a true fact rise by a factor of more than {times(factor(at))} with probability"
        f" at most {three_digits(chance)}."
    )


def _mechanism(draw: dict[str, Any]) -> str:
    noise = draw.get("noise", {})
    return str(noise.get("mechanism", ""))


def notebook(release: Release, numbers: str) -> dict[str, Any]:
    """Return a Jupyter notebook with the answer, a plot of it, and the methods paragraph."""
    csv = release.to_csv().replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    noisy = [output.name for output in release.outputs if output.low is not None]
    keys = [output.name for output in release.outputs if output.low is None]
    read = f'import io\n\nimport pandas as pd\n\nframe = pd.read_csv(io.StringIO("""{csv}"""))\nframe'
    draw = (
        "import matplotlib.pyplot as plt\n\n"
        f"labels = frame[{keys!r}].astype(str).agg(' · '.join, axis=1) if {bool(keys)} else ['all']\n"
        f"for name in {noisy!r}:\n"
        "    low, high = frame[name + '_low'], frame[name + '_high']\n"
        "    errors = [(frame[name] - low).clip(lower=0).fillna(0), (high - frame[name]).clip(lower=0).fillna(0)]\n"
        "    figure, axes = plt.subplots()\n"
        "    axes.errorbar(frame[name], range(len(frame)), xerr=errors, fmt='o', capsize=3)\n"
        "    axes.set_yticks(range(len(frame)), labels=list(labels))\n"
        "    axes.set_xlabel(name + ', with 95% confidence intervals for the noise')"
    )
    cells = [
        ("markdown", f"# Release {numbers}\n\n{_plain(release.receipt['query'])}\n\n{release.cost()}"),
        ("code", read),
        *([("code", draw)] if noisy else []),
        ("markdown", f"**Methods.** {_plain(methods(release))}"),
    ]
    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        "cells": [
            {"id": f"cell-{place}", "cell_type": kind, "metadata": {}, "source": text}
            | ({"outputs": [], "execution_count": None} if kind == "code" else {})
            for place, (kind, text) in enumerate(cells)
        ],
    }
