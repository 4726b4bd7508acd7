"""The checker adds up the sums of a derived answer again, and finds every planted error."""

import copy
import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from hubbub.audit.receipt import check_receipt
from hubbub.audit.receipt_derived import check_sources
from hubbub.audit.receipt_loss import ReceiptError
from hubbub.curator.session import open_session

YAML = """
version: 1
datasets:
  visits:
    source: visits.csv
    unit: row
    columns:
      site: {values: [a, b, c], required: true}
      female: {type: boolean, nullable: true}
      ward: {values: [x, y]}
      cost: {type: integer, bounds: [0, 100]}
    budget: {epsilon: 100}
analysts: {ana: {visits: {epsilon: 100}}}
"""
KEYS = "GROUP BY site, female"

Papers = dict[int, dict[str, Any]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Papers]:
    """A derived answer, and the receipts of all releases."""
    folder = tmp_path_factory.mktemp("derived")
    rows = [f"{'abc'[i % 3]},{('true', 'false', '')[i // 7 % 3]},{'xyz'[i % 3]},{i % 90}" for i in range(600)]
    (folder / "visits.csv").write_text("\n".join(["site,female,ward,cost", *rows]) + "\n")
    (folder / "hubbub.yaml").write_text(YAML)
    with open_session(folder / "hubbub.yaml") as session:
        releases = [
            session.query(f"SELECT site, female, AVG(cost) AS a, COUNT(*) AS n FROM visits {KEYS}", epsilon=3),
            session.query(f"SELECT site, female, AVG(cost) AS a, COUNT(*) AS n FROM visits {KEYS}", epsilon=1, key="k"),
            session.query("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=3),
            session.query("SELECT site, COUNT(*) AS n FROM visits WHERE cost > 5 GROUP BY site", epsilon=3),
        ]
        papers = {each.receipt["ledger"][0]["sequence"]: dict(each.receipt) for each in releases}
        text = "SELECT site, SUM(cost) AS s, COUNT(*) AS n FROM visits GROUP BY site"
        derived = session.query(text, epsilon="0.1")
    return json.loads(json.dumps(derived.document())), json.loads(json.dumps(papers), object_hook=_numbered)


def _numbered(value: dict[str, Any]) -> dict[Any, Any]:
    return {int(key) if key.isdecimal() else key: each for key, each in value.items()}


def test_an_honest_answer_is_derived_again(made: tuple[dict[str, Any], Papers]) -> None:
    document, papers = made
    found = check_receipt(document)
    assert found.sound, found.problems
    assert found.loss == "nothing more than the releases that it follows from"
    assert "follow exactly" in check_sources(document["receipt"], papers)[0]


Change = Callable[[dict[str, Any], dict[str, Any], Papers], None]


def another_sum(paper: dict[str, Any], derived: dict[str, Any], papers: Papers) -> None:
    derived["sums"][0][0] = str(Fraction(derived["sums"][0][0]) + 1)


def another_weight(paper: dict[str, Any], derived: dict[str, Any], papers: Papers) -> None:
    derived["measures"][0][0][2] = str(Fraction(derived["measures"][0][0][2]) * 2)


def a_source_twice(paper: dict[str, Any], derived: dict[str, Any], papers: Papers) -> None:
    derived["sources"][1] = derived["sources"][0]


def a_view_twice(paper: dict[str, Any], derived: dict[str, Any], papers: Papers) -> None:
    derived["views"].append(derived["views"][0])


def a_draw_twice(paper: dict[str, Any], derived: dict[str, Any], papers: Papers) -> None:
    derived["measures"][1].append(derived["measures"][0][0])


def another_version(paper: dict[str, Any], derived: dict[str, Any], papers: Papers) -> None:
    papers[derived["sources"][0]["charge"]]["data"][0]["version"] = "2-0123456789abcdef"


def other_declarations(paper: dict[str, Any], derived: dict[str, Any], papers: Papers) -> None:
    papers[derived["sources"][0]["charge"]]["declared"] = "0" * 64


def a_changed_source(paper: dict[str, Any], derived: dict[str, Any], papers: Papers) -> None:
    papers[derived["sources"][0]["charge"]]["measured"]["sums"][0][0] += 1


def another_condition(paper: dict[str, Any], derived: dict[str, Any], papers: Papers) -> None:
    derived["where"] = []
    number = max(papers)
    _as_source(derived, papers, 0, number)


def rows_without_a_cell(paper: dict[str, Any], derived: dict[str, Any], papers: Papers) -> None:
    ward = sorted(papers)[2]
    _as_source(derived, papers, 0, ward)


def a_cell_in_another_group(paper: dict[str, Any], derived: dict[str, Any], papers: Papers) -> None:
    cells = derived["views"][0]["cells"]
    cells[0], cells[-1] = cells[-1], cells[0]


def a_cell_left_out(paper: dict[str, Any], derived: dict[str, Any], papers: Papers) -> None:
    derived["views"][0]["cells"][0] = -1


def a_derived_source(paper: dict[str, Any], derived: dict[str, Any], papers: Papers) -> None:
    del papers[derived["sources"][0]["charge"]]["measured"]


def another_measure(paper: dict[str, Any], derived: dict[str, Any], papers: Papers) -> None:
    derived["wanted"][1] = derived["wanted"][0]


def a_price(paper: dict[str, Any], derived: dict[str, Any], papers: Papers) -> None:
    paper["charge"]["epsilon"] = "1"


def a_draw(paper: dict[str, Any], derived: dict[str, Any], papers: Papers) -> None:
    paper["event"]["parts"] = [[{"mechanism": "laplace", "sensitivity": 1, "scale": "10"}, 1]]


def _as_source(derived: dict[str, Any], papers: Papers, place: int, number: int) -> None:
    """Name another release as a source, consistently."""
    from hubbub.curator.earlier import measured_hash

    papers[number]["measured"]["of"] = derived["of"]
    derived["sources"][place] = {
        "charge": number,
        "hash": papers[number]["ledger"][0]["hash"],
        "measured": measured_hash(papers[number]),
    }


CHANGES: list[Change] = [
    another_sum,
    another_weight,
    a_source_twice,
    a_view_twice,
    a_draw_twice,
    another_version,
    other_declarations,
    a_changed_source,
    another_condition,
    rows_without_a_cell,
    a_cell_in_another_group,
    a_cell_left_out,
    a_derived_source,
    another_measure,
    a_price,
    a_draw,
]


@pytest.mark.parametrize("change", CHANGES)
def test_every_planted_error_is_found(made: tuple[dict[str, Any], Papers], change: Change) -> None:
    document, papers = copy.deepcopy(made)
    change(document["receipt"], document["receipt"]["derived"], papers)
    alone = check_receipt(document["receipt"])
    if alone.sound:
        with pytest.raises(ReceiptError):
            check_sources(document["receipt"], papers)


def test_a_description_that_does_not_fit_the_draws_is_found(made: tuple[dict[str, Any], Papers]) -> None:
    paper = copy.deepcopy(min(made[1].items())[1])
    assert check_receipt(paper).sound
    for change in ("sums", "measures"):
        broken = copy.deepcopy(paper)
        broken["measured"][change].pop()
        assert not check_receipt(broken).sound
    broken = copy.deepcopy(paper)
    broken["measured"]["bounds"] = {"groups": 1, "rows": 1}
    assert not check_receipt(broken).sound
    broken = copy.deepcopy(paper)
    broken["cells"] = [4]
    assert not check_receipt(broken).sound
