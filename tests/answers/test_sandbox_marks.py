"""An answer of the sandbox is marked wherever it is shown, printed or written."""

import io
import json
from fractions import Fraction
from pathlib import Path

import duckdb
from rich.console import Console

from hubbub.answers import render
from hubbub.answers.combine import refinable
from hubbub.answers.release import Output, Release
from hubbub.answers.sandbox import MADE_UP
from hubbub.audit.receipt import check_receipt

RECEIPT = {
    "sandbox": MADE_UP,
    "query": "SELECT COUNT(*) AS n FROM visits",
    "data": [{"dataset": "visits", "version": "made up", "unit": "row"}],
    "relation": "add_remove",
    "draws": [{"kind": "sum"}],
    "cells": [1],
    "ledger": [],
}
TRIED = Release(
    (Output("n", "integer", [7], [1.0], [13.0]), Output("made_up", "text", ["x"])),
    [None],
    Fraction(1),
    Fraction(0),
    RECEIPT,
)


def test_every_view_says_so() -> None:
    printed = io.StringIO()
    render.release(TRIED, Console(file=printed, width=200))
    shown = [
        repr(TRIED),
        printed.getvalue(),
        TRIED._repr_html_(),
        json.dumps(TRIED.to_dict()),
        json.dumps(TRIED.to_json()),
    ]
    shown.append(json.dumps(TRIED.vega_lite()))
    assert all(MADE_UP in text for text in shown)
    assert repr(TRIED).startswith(MADE_UP)
    assert TRIED.cost() == "nothing, in the sandbox; ε = 1 on the data"
    assert "in the ledger" not in printed.getvalue()
    assert Release.from_json(TRIED.to_json()).sandbox == MADE_UP


def test_files_have_a_column_that_says_so(tmp_path: Path) -> None:
    assert TRIED.to_csv() == "n,n_low,n_high,made_up,made_up_\n7,1.0,13.0,x,True\n"
    TRIED.export(tmp_path / "tried.parquet")
    assert duckdb.read_parquet(str(tmp_path / "tried.parquet")).fetchall() == [(7, 1.0, 13.0, "x", True)]


def test_a_real_answer_has_no_mark() -> None:
    real = Release(TRIED.outputs[:1], [None], Fraction(1), Fraction(0), {"query": "", "data": [], "ledger": []})
    assert real.sandbox == ""
    assert real.to_csv() == "n,n_low,n_high\n7,1.0,13.0\n"
    assert MADE_UP not in repr(real)


def test_it_is_no_receipt() -> None:
    assert not refinable(RECEIPT)
    assert refinable({name: each for name, each in RECEIPT.items() if name != "sandbox"})
    for paper in (RECEIPT, RECEIPT | {"receipt": 1}):
        checked = check_receipt({"answer": TRIED.document()["answer"], "receipt": paper})
        assert checked.problems == ["This answer is from the sandbox: nothing was charged, and there is no receipt."]
