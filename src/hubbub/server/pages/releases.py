"""Releases: what was paid for, once more and in forms to take away. All of it is free."""

import json
import re
from dataclasses import replace
from typing import Any

from starlette.responses import Response

from hubbub.answers.combine import combine
from hubbub.answers.release import Release
from hubbub.core.numbers import brief
from hubbub.errors import ParameterError
from hubbub.server.pages.frame import VERSION, Visit
from hubbub.server.problems import missing

_PAGE = 25
_FORMULA = frozenset("=+-@\t\r")
_MARKUP = re.compile(r"([\\`*_\[\]<>!#$&|~:])")
_WORDS = {"gaussian": "Gaussian", "laplace": "Laplace", "geometric": "two-sided geometric"}


def index(visit: Visit) -> Response:
    """Show the history, the newest first."""
    given = visit.request.query_params.get("before", "")
    before = _number(given) if given else None
    found = visit.service.releases(visit.principal, limit=_PAGE + 1, before=before)
    shown = found[:_PAGE]
    return visit.render("releases.html", releases=shown, next=shown[-1].id if len(found) > _PAGE else None)


def show(visit: Visit) -> Response:
    """Show one release, or two combined."""
    numbers = visit.request.path_params["numbers"]
    release = fetch(visit, numbers)
    return visit.render(
        "release.html",
        release=release,
        numbers=numbers,
        combined="combined" in release.receipt,
        methods=methods(release),
    )


def export(visit: Visit) -> Response:
    """Give a release as a file."""
    numbers, form = visit.request.path_params["numbers"], visit.request.path_params["form"]
    release = fetch(visit, numbers)
    if form == "csv":
        content, kind = _tame(release).to_csv(), "text/csv; charset=utf-8"
    elif form == "json":
        content, kind = json.dumps(release.document(), ensure_ascii=False, indent=1), "application/json"
    elif form == "ipynb":
        content, kind = json.dumps(notebook(release, numbers), ensure_ascii=False, indent=1), "application/x-ipynb+json"
    else:
        raise missing("such form of a release")
    disposition = f'attachment; filename="release-{numbers}.{form}"'
    return Response(content, media_type=kind, headers={"Content-Disposition": disposition})


def _tame(release: Release) -> Release:
    """Put an apostrophe before text that a spreadsheet would run as a formula: keys may be words that people wrote."""
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
    """Write a text so that Markdown shows it as it is: what somebody asked must not become a link or an image."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def fetch(visit: Visit, numbers: str) -> Release:
    """Find a release by its number, or two by both their numbers, as in 17-23: then combined."""
    first, dash, second = numbers.partition("-")
    release = visit.service.release(visit.principal, _number(first))
    return combine(release, visit.service.release(visit.principal, _number(second))) if dash else release


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise ParameterError("HB164", "there is no such release.", "See the list of releases.")
    return int(text)


def methods(release: Release) -> str:
    """Write the paragraph for a paper: everything that a reader needs to judge the noise."""
    parts = release.receipt.get("combined", [release.receipt])
    first = parts[0]
    units = ", ".join(
        f"each {each['unit']} of {each['dataset']} (data version {each['version']})" for each in first["data"]
    )
    bounds = first.get("bounds")
    limits = (
        f" Each contributes at most {bounds['rows']} rows to each of at most {bounds['groups']} groups."
        if bounds
        else ""
    )
    relation = {"add_remove": "added or removed", "replace": "replaced"}[first["relation"]]
    kinds = sorted({_WORDS.get(_mechanism(draw), "selection") for part in parts for draw in part["draws"]})
    price = f"ε = {brief(release.epsilon)}" + (f", δ = {brief(release.delta)}" if release.delta else "")
    entries = ", ".join(f"{each['sequence']} (hash {each['hash'][:16]})" for each in release.receipt["ledger"])
    twice = " Two independent draws were combined by inverse variance." if len(parts) > 1 else ""
    return (
        f"The figures answer the query “{first['query']}” and are differentially private, with {price} under the"
        f" protection of {units}; neighboring datasets differ by one of these being {relation}.{limits}"
        f" Noise ({' and '.join(kinds)}) was drawn exactly by hubbub {VERSION}.{twice} Intervals are 95%"
        f" intervals of the noise and do not cover sampling error. The charge is entry {entries} of the ledger."
    )


def _mechanism(draw: dict[str, Any]) -> str:
    noise = draw.get("noise", {})
    return str(noise.get("mechanism", ""))


def notebook(release: Release, numbers: str) -> dict[str, Any]:
    """Make a Jupyter notebook that holds the answer, draws it and says how it came about."""
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
        "    axes.set_xlabel(name + ', with 95% intervals of the noise')"
    )
    cells = [
        ("markdown", f"# Release {numbers}\n\n{_plain(release.receipt['query'])}\n\n{release.price()}"),
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
