"""A long answer that an earlier hubbub stored reads as it was.

`golden/columns/answer.json` was written on 18 November 2026 in the form `parquet 1` and is never written again.
"""

import json
from datetime import date, datetime
from pathlib import Path

from hubbub.answers.release import read_answer
from hubbub.audit.receipt_format import check_answer

STORED = json.loads((Path(__file__).parent / "golden" / "columns" / "answer.json").read_text())


def test_a_stored_long_answer_reads_as_it_was() -> None:
    outputs, ratio, model = read_answer(STORED)
    assert {output.name: list(output.values) for output in outputs} == {
        "text": ["1", None, "ε'\",\n", "", "é"],
        "integer": [1, None, -(2**63), 4, 2**63 - 1],
        "real": [1.5, None, 0.0, None, 5e-324],
        "boolean": [True, False, True, None, True],
        "date": [date(2020, 2, 29), None, date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31)],
        "timestamp": [
            datetime(2020, 1, 1, microsecond=1),
            None,
            datetime(1, 1, 1),
            datetime(9999, 12, 31),
            datetime(1969, 12, 31),
        ],
        "n": [1, 2, 3, 4, 5],
    }
    assert [output.kind for output in outputs] == [*(output.name for output in outputs[:-1]), "integer"]
    n = outputs[-1]
    assert n.low is not None
    assert n.high is not None
    assert n.joint is not None
    assert n.sampling is not None
    assert (list(n.low), list(n.high)) == ([0.0, 1.0, None, 3.0, 4.0], [2.0, 3.0, None, 5.0, 6.0])
    assert (list(n.joint[0]), list(n.sampling.values)) == ([0.0, 1.0, None, 3.0, 4.0], [2.0] * 5)
    assert not n.sampling.at_most
    assert list(ratio) == [0.5] * 5
    assert model == {"note": "a model"}


def test_the_checker_reads_the_stored_form() -> None:
    check_answer(STORED)
