"""Everything asked so far: from real charges of a real ledger, and every sentence against its formula."""

import math
import re
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist

import mpmath
import pytest

import hubbub
from hubbub.accounting.chain import facts_text
from hubbub.accounting.sqlite import SqliteStore
from hubbub.config import load
from hubbub.core.events import GaussianEvent, LaplaceEvent, ThresholdEvent
from hubbub.errors import ParameterError
from hubbub.semantics import tradeoff
from hubbub.semantics.history import QueryHistory, query_history

YAML = """
version: 1
datasets:
  visits:
    source: visits.csv
    unit: row
    columns: {region: {values: [North, South]}}
    budget: {epsilon: 4, delta: 1e-6}
analysts:
  ana: {visits: {epsilon: 2}}
  ben: {visits: {epsilon: 1}}
  eve: {visits: {epsilon: 1}}
groups:
  interns: {members: [ana, ben], visits: {epsilon: 3}}
"""
COUNT = "SELECT COUNT(*) AS n FROM visits"


def figures(text: str) -> list[float]:
    return [float(each.replace(",", "")) for each in re.findall(r"\d[\d,]*(?:\.\d+)?(?:e-\d+)?", text)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "visits.csv").write_text("region\n" + "North\nSouth\n" * 20)
    (tmp_path / "hubbub.yaml").write_text(YAML)
    for analyst, epsilons in {"ana": ("0.5", "0.25"), "ben": ("0.5",), "eve": ("1",)}.items():
        with hubbub.open(tmp_path / "hubbub.yaml", analyst=analyst) as session:
            for epsilon in epsilons:
                session.query(COUNT, epsilon=epsilon, delta=0, fresh=True)
    return tmp_path


def read(folder: Path, analyst: str | None = None, group: str | None = None, dataset: str = "visits") -> QueryHistory:
    config = load(folder / "hubbub.yaml")
    store = SqliteStore(config.database, read_only=True)
    try:
        with store.snapshot() as snapshot:
            return query_history(snapshot, config.policy, dataset, analyst=analyst, group=group)
    finally:
        store.close()


def test_what_was_asked_is_summed_by_analyst_group_and_everybody(folder: Path) -> None:
    ana, interns, everybody = read(folder, analyst="ana"), read(folder, group="interns"), read(folder)
    assert [found.count for found in (ana, interns, everybody)] == [2, 3, 4]
    assert [found.total.pure for found in (ana, interns, everybody)] == [
        Fraction(3, 4),
        Fraction(5, 4),
        Fraction(9, 4),
    ]
    assert ana.heading == "All queries so far by ana on visits: 2 charges."
    assert interns.heading == "All queries so far by the group interns on visits: 3 charges."
    assert everybody.heading == "All queries so far by everybody on visits: 4 charges."
    assert [found.cap_epsilon for found in (ana, interns, everybody)] == [2, 3, 4]


def test_every_sentence_about_what_was_asked_says_its_formula(folder: Path) -> None:
    found = read(folder, group="interns")
    _, cost, guesses, odds, listed, cap = found.sentences
    assert cost == "However the queries were chosen, their total privacy cost is ε = 1.25."
    e = mpmath.exp(1.25)
    assert 0 <= figures(odds)[0] - e < 0.01
    _, right, _ = figures(guesses)
    assert 0 <= right - 100 * e / (e + 1) < 1
    # as a list: three noisy counts, each a bit in randomized response; the eight outcomes enumerated
    distributions = [(1.0, 1.0)]
    for epsilon in (0.5, 0.25, 0.5):
        p = float(1 / (1 + mpmath.exp(-epsilon)))
        distributions = [(a * x, b * y) for a, b in distributions for x, y in ((p, 1 - p), (1 - p, p))]
    best = 50 * sum(max(pair) for pair in distributions)
    shown, of, level, power, bits = figures(listed)
    assert (of, level) == (100, 5)
    assert -0.05 <= shown - best < 0.2
    left, most = 0.05, 0.0
    for a, b in sorted(distributions, key=lambda pair: -pair[0] / pair[1]):
        share = min(1.0, left / b)
        most, left = most + share * a, left - share * b
    assert -0.05 <= power - 100 * most < 0.2
    assert "at most about" in listed  # loss distributions are floating point
    told = sum(a * mpmath.log(2 * a / (a + b), 2) + b * mpmath.log(2 * b / (a + b), 2) for a, b in distributions) / 2
    assert -0.001 <= bits - told < 0.01
    assert cap == "However further queries are chosen, their total stays within the cap: ε = 3 and δ = 1e-06."


def test_without_loss_distributions_the_curves_are_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = read(folder)
    monkeypatch.setitem(__import__("sys").modules, "dp_accounting.pld", None)
    curve = found.tradeoff()
    assert curve.certain
    assert curve == tradeoff.composed(found.total)
    assert "at most about" not in found.sentences[4]
    (shown, *_) = figures(found.sentences[4])
    assert 0 <= shown - 100 * float(curve.guess()) < 0.1 + 1e-9


def made(facts: Counter[str]) -> QueryHistory:
    return QueryHistory("ana", "visits", facts, written_off=False, cap_epsilon=Fraction(2), cap_delta=Fraction(0))


def test_nothing_asked_is_said_so() -> None:
    found = made(Counter())
    assert found.sentences == (
        "All queries so far by ana on visits: 0 charges.",
        "There were no queries, so nobody can have learned anything from them.",
        "However further queries are chosen, their total stays within the cap: ε = 2.",
    )
    assert found.to_json()["guess"] == 0.5


def test_gaussian_noise_and_failures_are_told_as_they_are() -> None:
    noisy = made(Counter({facts_text(GaussianEvent(4, Fraction(100))): 1}))
    assert noisy.sentences[0].endswith("1 charge.")
    assert "the cap has no δ to express their cost at" in noisy.sentences[1]
    assert noisy.plain() is None
    assert noisy.tradeoff().certain  # a vector has no loss distribution here, so the curves stand
    keys = made(Counter({facts_text(ThresholdEvent(LaplaceEvent(1, Fraction(2)), keys=1, above=20)): 2}))
    plain = keys.plain()
    assert plain is not None
    assert plain.epsilon == 1
    assert plain.delta == keys.total.delta > 0
    assert " and δ = " in keys.sentences[1]
    # groups: by more than e^ε only if a group that one person has alone is shown, which has the probability δ
    (said,) = [text for text in keys.sentences if text.startswith("In such a list")]
    factor, chance = figures(said)
    assert factor == 2.72
    assert 0 <= chance - float(keys.total.delta) <= 0.01 * float(keys.total.delta)


@pytest.mark.row(114)
def test_gaussian_charges_state_how_often_odds_rise_by_more() -> None:
    """One count with Gaussian noise of σ = 4 under a cap of (2, 1e-6): the tail of the noise itself, not δ."""
    noisy = replace(made(Counter({facts_text(GaussianEvent(1, Fraction(16))): 1})), cap_delta=Fraction("1e-6"))
    plain = noisy.plain()
    assert plain is not None
    (said,) = [text for text in noisy.sentences if text.startswith("In such a list")]
    factor, chance = figures(said)
    assert -1e-9 <= factor - math.exp(plain.epsilon) < 0.01 * factor
    weights = {z: math.exp(-z * z / 32) for z in range(-100, 101)}
    beyond = sum(w for z, w in weights.items() if (2 * z + 1) / 32 > plain.epsilon) / sum(weights.values())
    assert 0 <= chance - beyond <= 0.01 * beyond
    assert "except with probability" in plain.odds


def test_the_total_is_the_one_that_the_budget_shows(folder: Path) -> None:
    """ana's cap has a δ, under which twenty-five small charges cost less than their sum of 1.5 together."""
    with hubbub.open(folder / "hubbub.yaml", analyst="ana") as session:
        for number in range(25):
            session.query(COUNT, epsilon="0.03", delta=0, key=f"{number}")
        (view,) = session.budget()
    (own,) = [state for state in view.caps if state.scope == "analyst"]
    found = read(folder, analyst="ana")
    plain = found.plain()
    assert found.total.pure == Fraction("1.5")
    assert plain is not None
    assert plain.epsilon == own.spent
    assert found.to_json()["epsilon"] == str(own.spent)
    noisy = replace(made(Counter({facts_text(GaussianEvent(4, Fraction(100))): 1})), cap_delta=Fraction("1e-6"))
    told = noisy.plain()
    assert told is not None
    # noise of variance 100 on a vector that moves by 2 is below a Gaussian pair of variance 4/98, and 79% of δ is its
    # share: the exact ε of the pair, by its own formula
    root = math.sqrt(4 / 98)

    def delta_at(epsilon: float) -> float:
        normal = NormalDist()
        return normal.cdf(root / 2 - epsilon / root) - math.exp(epsilon) * normal.cdf(-root / 2 - epsilon / root)

    low, high = 0.0, 5.0
    for _ in range(60):
        low, high = ((low + high) / 2, high) if delta_at((low + high) / 2) > 0.79e-6 else (low, (low + high) / 2)
    assert high * 0.999 <= float(told.epsilon) <= high * 1.01
    assert told.delta == Fraction("1e-6")


def test_a_loss_that_was_written_off_is_not_hidden() -> None:
    lost = QueryHistory(
        "everybody", "visits", Counter(), written_off=True, cap_epsilon=Fraction(1), cap_delta=Fraction(0)
    )
    assert lost.sentences[-1].startswith("Part of the ledger was lost and written off")


def test_strangers_and_unknown_data_are_refused(folder: Path) -> None:
    for wrong in ({"analyst": "nobody"}, {"group": "nobody"}, {"dataset": "nothing"}):
        with pytest.raises(ParameterError, match="HB12"):
            read(folder, **wrong)


def test_it_can_be_had_as_json(folder: Path) -> None:
    form = read(folder, analyst="ana").to_json()
    assert form["epsilon"] == "3/4"
    assert form["charges"] == 2
    curve = form["tradeoff"]
    assert isinstance(curve, list)
    assert curve[0] == [0.0, pytest.approx(0.0, abs=1e-6)]
    assert curve[-1][1] == 1.0


def test_one_charge_between_two_points_of_the_grid_is_told_exactly() -> None:
    found = made(Counter({facts_text(LaplaceEvent(1, 1 / Fraction("0.51"))): 1}))
    power = found.tradeoff().power(Fraction(1, 20))
    assert float(power) == pytest.approx(float(mpmath.exp(0.51)) / 20, abs=1e-12)
