"""The receipt checker accepts honest receipts and detects every false claim about the loss."""

import ast
import copy
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

from hubbub.audit import (
    long_answer,
    receipt_atoms,
    receipt_cube,
    receipt_derived,
    receipt_draws,
    receipt_fields,
    receipt_loss,
)
from hubbub.audit import receipt as receipts
from hubbub.audit import receipt_format as receipt_form
from hubbub.audit.receipt import check_receipt
from hubbub.core.events import to_facts
from hubbub.core.unit import Relation
from hubbub.curator.session import open_session
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.partition_selection import PartitionSelection
from hubbub.mechanisms.weighted_selection import WeightedSelection

YAML = """
version: 1
datasets:
  visits:
    source: visits.parquet
    unit: {unit}
    relation: {relation}
    columns:
      patient: {{}}
      region: {{values: [North, South, East]}}
      age: {{bounds: [0, 110]}}
      cost: {{bounds: [-100, 1000]}}
      word: {{}}
    budget: {{epsilon: 1000, delta: 1e-5}}
analysts: {{ana: {{visits: {{epsilon: 1000}}}}}}
"""
QUERIES = {
    "count": "SELECT COUNT(*) AS n FROM visits WHERE age >= 0",
    "average": "SELECT AVG(COALESCE(age, 1)) AS a FROM visits",
    "sums": "SELECT region, COUNT(*) AS n, SUM(cost) AS s, AVG(age) AS a, STDDEV(age) AS d FROM visits GROUP BY region",
    "rollup": "SELECT region, COUNT(*) AS n FROM visits GROUP BY ROLLUP (region)",
    "units": "SELECT COUNT(DISTINCT patient) AS n FROM visits",
    "distinct": "SELECT COUNT(DISTINCT word) AS n FROM visits",
    "order": "SELECT MEDIAN(age) AS m, MAX(age) AS x, QUANTILE_CONT(age, 0.9) AS q, MODE(region) AS r FROM visits",
    "quantiles": "SELECT QUANTILE_CONT(age, 0.25) AS a, MEDIAN(age) AS b, QUANTILE_CONT(age, 0.95) AS c FROM visits",
    "discovered": "SELECT word, COUNT(*) AS n FROM visits GROUP BY word",
    "top": "SELECT region FROM visits GROUP BY region ORDER BY COUNT(*) DESC LIMIT 2",
}
UNITS = ("row", "{column: patient, groups: 2, rows: 3}")
RELATIONS = ("add_remove", "replace")

Papers = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("receipts")
    with duckdb.connect() as made:
        made.execute(
            "COPY (SELECT i % 50 AS patient, ['North', 'South', 'East'][1 + i % 3] AS region, i % 90 AS age,"
            f" i % 900 AS cost, 'w' || (i % 4) AS word FROM range(4000) t(i)) TO '{path}/visits.parquet'"
        )
    return path


@pytest.fixture(scope="module")
def papers(folder: Path) -> Papers:
    """Run every query under every unit and relation, with and without δ; keep the documents."""
    found: Papers = {}
    for unit in UNITS:
        for relation in RELATIONS:
            place = folder / f"{unit[:3]}-{relation}"
            place.mkdir()
            text = YAML.format(unit=unit, relation=relation).replace("visits.parquet", "../visits.parquet")
            (place / "hubbub.yaml").write_text(text)
            with open_session(place / "hubbub.yaml") as session:
                for name, sql in QUERIES.items():
                    if name == "units" and unit == "row":
                        continue
                    for delta in (None, 0):
                        if name == "discovered" and delta == 0:
                            continue
                        release = session.query(sql, epsilon="2", delta=delta, fresh=True)
                        document = json.loads(json.dumps(release.document()))
                        found[f"{name} {unit[:3]} {relation} {delta}"] = document
    return found


def test_honest_receipts_are_sound_and_cost_no_more_than_was_charged(papers: Papers) -> None:
    assert len(papers) > 50
    kinds = set()
    for name, document in papers.items():
        found = check_receipt(document)
        assert found.sound, (name, found.problems)
        assert "charged: 2" in found.loss
        kinds |= {draw["kind"] for draw in document["receipt"]["draws"]}
        assert check_receipt(document["receipt"]).sound, "a receipt alone is enough"
    assert kinds == {"public", "sum", "selection", "quantiles", "threshold", "weights", "top"}


def _less(text: str, by: Fraction = Fraction(1, 2)) -> str:
    return str(Fraction(text) * by)


def _shrink_noise(paper: dict[str, Any]) -> None:
    """State less noise consistently, in the draw and in the event: the loss is then above the charge."""

    def walk(value: object) -> None:
        if isinstance(value, dict):
            for key in ("scale", "variance"):
                if key in value:
                    value[key] = _less(value[key])
            if "rate" in value:
                value["rate"] = _less(value["rate"], Fraction(2))
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    # one walk for each place: json made them separate objects
    walk(paper["draws"])
    walk(paper["event"])


def _understate_sensitivity(paper: dict[str, Any]) -> None:
    def walk(value: object) -> None:
        if isinstance(value, dict):
            for key in ("sensitivity", "sensitivity_squared"):
                if key in value:
                    value[key] -= 1
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(paper["draws"])
    walk(paper["event"])


def _drop_a_draw(paper: dict[str, Any]) -> None:
    paper["draws"].pop()


def _drop_an_event(paper: dict[str, Any]) -> None:
    paper["event"]["parts"].pop()


def _lower_the_charge(paper: dict[str, Any]) -> None:
    paper["charge"]["epsilon"] = "1"


def _drop_a_ledger_entry(paper: dict[str, Any]) -> None:
    paper["ledger"] = []


def _other_version(paper: dict[str, Any]) -> None:
    paper["receipt"] = 2


def _extra_key(paper: dict[str, Any]) -> None:
    paper["note"] = "trust me"


def _no_noise(paper: dict[str, Any]) -> None:
    text = json.dumps(paper).replace('"scale": "', '"scale": "-').replace('"variance": "', '"variance": "-')
    paper.clear()
    paper.update(json.loads(text.replace('"rate": "', '"rate": "1000')))


LIES: tuple[Callable[[dict[str, Any]], None], ...] = (
    _shrink_noise,
    _understate_sensitivity,
    _drop_a_draw,
    _drop_an_event,
    _lower_the_charge,
    _drop_a_ledger_entry,
    _other_version,
    _extra_key,
    _no_noise,
)


@pytest.mark.parametrize("lie", LIES)
def test_every_lie_about_the_loss_is_found(papers: Papers, lie: Callable[[dict[str, Any]], None]) -> None:
    for name, document in papers.items():
        paper = copy.deepcopy(document["receipt"])
        lie(paper)
        found = check_receipt(paper)
        assert not found.sound, (name, lie.__name__)


def test_understated_bounds_are_found(papers: Papers) -> None:
    """More rows or groups per unit than the noise covers."""
    for name, document in papers.items():
        paper = copy.deepcopy(document["receipt"])
        if paper["bounds"] is None or "row" in name.split()[1]:
            continue
        per_unit = all(draw.get("per") == "unit" for draw in paper["draws"])
        paper["bounds"]["rows"] += 1
        if not per_unit:
            assert not check_receipt(paper).sound, name


def test_a_relation_that_protects_more_needs_more_noise(papers: Papers) -> None:
    for name, document in papers.items():
        # a count over one cell moves no further when one unit takes another's place; sums and counts by group do
        if "add_remove" in name and name.split()[0] in ("sums", "rollup", "order", "discovered"):
            paper = copy.deepcopy(document["receipt"])
            paper["relation"] = "replace"
            assert not check_receipt(paper).sound, name


def test_another_answer_than_the_receipts_is_found(papers: Papers) -> None:
    document = copy.deepcopy(papers["count row add_remove 0"])
    document["answer"]["columns"][0]["values"][0] += 1
    assert not check_receipt(document).sound


@pytest.mark.parametrize("document", [None, [], {}, {"receipt": 1}, {"receipt": {}}, 7, "x", {"receipt": [1]}])
def test_what_is_no_receipt_is_not_sound(document: object) -> None:
    assert not check_receipt(document).sound


def test_the_checker_imports_nothing_of_the_product() -> None:
    parts = ("format", "fields", "draws", "loss", "derived", "atoms", "cube")
    own = {"hubbub.audit.long_answer", *(f"hubbub.audit.receipt_{name}" for name in parts)}
    derived = (receipt_atoms, receipt_cube, receipt_derived)
    for module in (receipts, receipt_form, receipt_fields, *derived, receipt_draws, receipt_loss, long_answer):
        tree = ast.parse(Path(str(module.__file__)).read_text())
        names = [a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names]
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        assert all(node.level == 0 for node in imports)
        names += [f"{node.module}.{a.name}" for node in imports for a in node.names]
        ours = [name for name in names if name.startswith("hubbub")]
        assert all(name in own or name.rpartition(".")[0] in own for name in ours), ours


@pytest.mark.parametrize("keys", [1, 3, 50])
@pytest.mark.parametrize(
    "noise",
    [
        Laplace(sensitivity=50, scale=Fraction(7)),
        Gaussian(sensitivity_squared=50, variance=Fraction(90)),
        Gaussian(sensitivity_squared=50, variance=Fraction(3, 2)),
    ],
)
def test_the_checkers_own_tail_is_the_mechanisms_slip(keys: int, noise: Laplace | Gaussian) -> None:
    """Two derivations of one δ agree to a billionth; facts that make it smaller than it is are refused."""
    rule = PartitionSelection.least(
        keys=keys, contribution=1, relation=Relation.ADD_REMOVE, noise=noise, delta=Fraction(1, 10**6)
    )
    draw = {"what": "keys", "per": "unit", "adds": [0, 1], "threshold": rule.threshold, "noise": to_facts(rule.event)}
    found, _ = receipt_draws._threshold(draw, [(None, keys, 1, keys)], "add_remove")
    assert rule.delta * (1 - Fraction(1, 10**9)) <= found.delta <= rule.delta
    for wrong in ({"keys": keys - 1}, {"above": rule.threshold}):
        draw["noise"] = {**to_facts(rule.event), **wrong}
        with pytest.raises(receipt_loss.ReceiptError):
            receipt_draws._threshold(draw, [(None, keys, 1, keys)], "add_remove")


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(("keys", "rho"), [(2, "0.5"), (60, "0.01"), (256, "0.3")])
def test_the_checker_derives_the_slips_of_weights(keys: int, rho: str, relation: Relation) -> None:
    """Two derivations of one δ, block by block and key by key: about what is stated, and at least 7/8 of it."""
    rule = WeightedSelection.from_rho(keys=keys, weight=5040, relation=relation, rho=rho, delta="1e-6")
    facts = {"keys": keys, "weight": 5040, "threshold": rule.threshold, "noise": to_facts(rule.event)}
    loss, events = receipt_draws._weights({"what": "weights", **facts}, [(None, 1, 1, 1)], relation.value)
    assert rule.delta * Fraction(7, 8) <= loss.delta <= rule.delta * Fraction(10_001, 10_000)
    assert loss.rho == Fraction(rho)
    assert events == [(receipt_draws.exact_facts(to_facts(rule.event)), 1)]
    noise = {**to_facts(rule.noise.event), "sensitivity_squared": rule.noise.sensitivity_squared - 1}
    wrongs: list[dict[str, Any]] = [
        {"keys": keys + 1},
        {"weight": 5041},
        {"threshold": rule.threshold + 1},
        {"noise": {**to_facts(rule.event), "noise": noise}},
        {"threshold": 5000},
    ]
    for wrong in wrongs:
        with pytest.raises(receipt_loss.ReceiptError):
            receipt_draws._weights({"what": "weights", **facts, **wrong}, [(None, 1, 1, 1)], relation.value)


def test_the_scores_of_quantiles_together_move_by_the_common_multiple(papers: Papers) -> None:
    """Levels 1/4, 1/2 and 19/20 move by 3, 1 and 19: by 57 all, times the rows of a unit; 56 would be too little."""
    for name, document in papers.items():
        if not name.startswith("quantiles"):
            continue
        paper = document["receipt"]
        (draw,) = paper["draws"]
        assert draw["levels"] == ["1/4", "1/2", "19/20"]
        assert draw["picks"][0]["sensitivity"] % 57 == 0
        forged = copy.deepcopy(paper)
        forged["draws"][0]["picks"][0]["sensitivity"] -= 1
        forged["event"]["parts"][0][0]["sensitivity"] -= 1
        assert check_receipt(paper).sound
        assert any("the sensitivity of the scores is" in problem for problem in check_receipt(forged).problems)


def test_permute_and_flip_has_no_bounded_range(papers: Papers) -> None:
    """The same rate is charged by its pure loss alone, so that four times the ρ is counted."""
    paper = next(document["receipt"] for name, document in papers.items() if name.startswith("order"))
    rules = {pick["rule"] for draw in paper["draws"] for pick in draw["picks"]}
    assert rules <= {"permute_and_flip", "exponential"}
    facts = {"mechanism": "selection", "sensitivity": 2, "monotone": False, "rate": Fraction(1, 4)}
    bounded = receipt_draws.stated_loss(facts | {"rule": "exponential"})
    pure = receipt_draws.stated_loss(facts | {"rule": "permute_and_flip"})
    assert bounded.pure == pure.pure == 1
    assert (bounded.rho, pure.rho) == (Fraction(1, 8), Fraction(1, 2))
