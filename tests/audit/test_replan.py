"""Read the query of a receipt, and plan it again."""

import datetime
from fractions import Fraction
from typing import Any

import pytest

from hubbub.audit.replan import question_of
from hubbub.curator.question import Question

QUERIES: list[dict[str, Any]] = [
    {"sql": "SELECT COUNT(*) FROM t"},
    {"sql": "SELECT COUNT(*) FROM t WHERE a = $1", "parameters": ["it's, -- raw"]},
    {"sql": "SELECT COUNT(*) FROM t WHERE a = ' -- raw' AND b = $1", "parameters": [7], "raw": True},
    {
        "sql": "SELECT COUNT(*) AS n, SUM(b) AS s FROM t WHERE d > $1 AND e < $2 AND f = $3 AND g = $4",
        "parameters": [datetime.date(2020, 2, 29), datetime.datetime(2020, 1, 2, 3, 4), Fraction(-1, 3), True],
        "groups": 2,
        "rows": 3,
        "weights": {"n": 2, "s": "1/3"},
        "raw": True,
    },
]


@pytest.mark.parametrize("said", QUERIES)
def test_a_question_is_read_back_from_what_the_ledger_keeps_of_it(said: dict[str, Any]) -> None:
    asked = Question(**{"epsilon": "0.1", "delta": "1e-6", **said})
    paper = {"query": asked.text(), "bounds": None, "charge": {"epsilon": "1/10", "delta": "1/1000000"}}
    read = question_of(paper)
    assert read.text() == asked.text()
    assert read.values() == asked.values()
    assert (read.epsilon, read.delta, read.raw) == (Fraction(1, 10), Fraction(1, 10**6), asked.raw)


def test_nothing_that_stands_in_a_receipt_is_run() -> None:
    paper = {"query": "SELECT 1 -- $1 = print('x')", "bounds": None, "charge": {"epsilon": "1", "delta": "0"}}
    assert question_of(paper).parameters == ()
    assert question_of(paper).sql == paper["query"]
