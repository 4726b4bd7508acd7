"""The checker solves for the sums of overlapping releases again, and finds every planted error."""

import copy
import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from tests.audit.test_receipt_derived import YAML, Papers

from hubbub.audit.receipt import check_receipt
from hubbub.audit.receipt_atoms import UnknownFunctionError, cell_finder, evaluated, tree_of
from hubbub.audit.receipt_derived import check_sources
from hubbub.audit.receipt_loss import ReceiptError
from hubbub.curator.session import open_session

EARLIER = (
    "SELECT site, COUNT(*) AS n, SUM(cost) AS s FROM visits WHERE cost <= 60 GROUP BY site",
    "SELECT site, COUNT(*) AS n, SUM(cost) AS s FROM visits WHERE cost <= 20 GROUP BY site",
    "SELECT site, COUNT(*) AS n FROM visits GROUP BY site",
    "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
)
ASKED = "SELECT site, COUNT(*) AS n, SUM(cost) AS s FROM visits WHERE cost > 20 AND cost <= 60 GROUP BY site"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Papers]:
    """A difference of two releases, and the receipts of all."""
    folder = tmp_path_factory.mktemp("solved")
    rows = [f"{'abc'[i % 3]},{('true', 'false', '')[i // 7 % 3]},{'xyz'[i % 3]},{i % 90}" for i in range(600)]
    (folder / "visits.csv").write_text("\n".join(["site,female,ward,cost", *rows]) + "\n")
    (folder / "hubbub.yaml").write_text(YAML)
    with open_session(folder / "hubbub.yaml") as session:
        releases = [session.query(text, epsilon=3, fresh=True) for text in EARLIER]
        papers = {each.receipt["ledger"][0]["sequence"]: dict(each.receipt) for each in releases}
        derived = session.query(ASKED, free=True, raw=True)
    exact = [
        [sum("abc"[i % 3] == site and 20 < i % 90 <= 60 for i in range(600)) for site in "abc"],
        [sum(i % 90 for i in range(600) if "abc"[i % 3] == site and 20 < i % 90 <= 60) for site in "abc"],
    ]
    for column, values in zip(derived.outputs[1:], exact, strict=True):
        # ten times the half width: missed once in 10²⁰ answers
        assert all(
            abs(float(v) - x) <= 5 * (high - low)  # type: ignore[arg-type, operator]
            for v, x, low, high in zip(column.values, values, column.low or [], column.high or [], strict=True)
        )
    document: dict[str, Any] = json.loads(json.dumps(derived.document()))
    return document, json.loads(json.dumps(papers), object_hook=_numbered)


def _numbered(value: dict[str, Any]) -> dict[Any, Any]:
    return {int(key) if key.isdecimal() else key: each for key, each in value.items()}


def test_an_honest_difference_is_derived_again(made: tuple[dict[str, Any], Papers]) -> None:
    document, papers = made
    assert check_receipt(document).sound
    assert document["receipt"]["derived"]["solved"][0] is not None
    lines = check_sources(document["receipt"], papers)
    assert "follow exactly" in lines[0]
    assert not any("functions" in line for line in lines)


Change = Callable[[dict[str, Any], dict[str, Any], Papers], None]


def another_weight(paper: dict[str, Any], derived: dict[str, Any], papers: Papers) -> None:
    term = derived["solved"][0]["rows"][0][0]
    term[3] = str(-Fraction(term[3]))


def a_term_left_out(paper: dict[str, Any], derived: dict[str, Any], papers: Papers) -> None:
    derived["solved"][0]["rows"][0].pop()


def groups_exchanged(paper: dict[str, Any], derived: dict[str, Any], papers: Papers) -> None:
    rows, sums = derived["solved"][0]["rows"], derived["sums"][0]
    rows[0], rows[1], sums[0], sums[1] = rows[1], rows[0], sums[1], sums[0]


def another_condition(paper: dict[str, Any], derived: dict[str, Any], papers: Papers) -> None:
    derived["where"] = [derived["where"][0]]


def another_cell(paper: dict[str, Any], derived: dict[str, Any], papers: Papers) -> None:
    term = derived["solved"][0]["rows"][0][0]
    term[2] = (term[2] + 1) % 3


def another_measure(paper: dict[str, Any], derived: dict[str, Any], papers: Papers) -> None:
    derived["wanted"][0]["present"] = ['["column","0.ward","text"]']


def a_draw_in_two_measures(paper: dict[str, Any], derived: dict[str, Any], papers: Papers) -> None:
    derived["solved"][1] = derived["solved"][0]


def releases_of_people(paper: dict[str, Any], derived: dict[str, Any], papers: Papers) -> None:
    for each in papers.values():
        each["bounds"] = each["measured"]["bounds"] = {"groups": 1, "rows": 1}
    _named_again(derived, papers)


def noise_in_common(paper: dict[str, Any], derived: dict[str, Any], papers: Papers) -> None:
    for each in papers.values():
        each["measured"]["shared"] = True
    _named_again(derived, papers)


def another_version(paper: dict[str, Any], derived: dict[str, Any], papers: Papers) -> None:
    papers[derived["sources"][0]["charge"]]["data"][0]["version"] = "2-0123456789abcdef"


def _named_again(derived: dict[str, Any], papers: Papers) -> None:
    from hubbub.curator.earlier import measured_hash

    for named in derived["sources"]:
        named["measured"] = measured_hash(papers[named["charge"]])


CHANGES: list[Change] = [
    another_weight,
    a_term_left_out,
    groups_exchanged,
    another_condition,
    another_cell,
    another_measure,
    a_draw_in_two_measures,
    releases_of_people,
    noise_in_common,
    another_version,
]


@pytest.mark.parametrize("change", CHANGES)
def test_every_planted_error_in_overlapping_releases_is_found(
    made: tuple[dict[str, Any], Papers], change: Change
) -> None:
    document, papers = copy.deepcopy(made)
    change(document["receipt"], document["receipt"]["derived"], papers)
    if check_receipt(document["receipt"]).sound:
        with pytest.raises(ReceiptError):
            check_sources(document["receipt"], papers)


def test_the_evaluator_follows_sql() -> None:
    """NULL is neither true nor false, and a key with no such value is no cell."""
    age = '["column","0.age","integer"]'
    young = f'["lt",[{age},["value",18,"integer"]],"boolean"]'
    assert evaluated(tree_of(young), {"0.age": 17}) is True
    assert evaluated(tree_of(young), {"0.age": None}) is None
    both = f'["or",[{young},["is_null",[{age}],"boolean"]],"boolean"]'
    assert [evaluated(tree_of(both), {"0.age": age}) for age in (17, 18, None)] == [True, False, True]
    find = cell_finder([young], {"keys": [{"of": age, "values": [1, 2], "null": False}]})
    assert [find({"0.age": value}) for value in (1, 2, 3, 20, None)] == [0, 1, -1, -1, -1]
    with pytest.raises(UnknownFunctionError):
        evaluated(tree_of(f'["sqrt",[{age}],"real"]'), {"0.age": 4})
    with pytest.raises(UnknownFunctionError):
        evaluated(tree_of(young), {})
