"""Noise by what it costs the caps: queries that are asked by accuracy."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hubbub.audit.receipt import check_receipt
from hubbub.audit.release import audit
from hubbub.config import load
from hubbub.curator import noise_choice
from hubbub.curator.planner import Planner
from hubbub.curator.session import Session, open_session
from hubbub.errors import BudgetError, ParameterError

YAML = """
version: 1
datasets:
  visits:
    source: visits.csv
    unit: row
    reuse: {reuse}
    columns:
      site: {{values: [a, b, c], required: true}}
      cost: {{type: real, bounds: [0, 100], step: 0.5}}
      other: {{type: real, bounds: [0, 100], step: 0.5}}
    budget: {{epsilon: {cap}, delta: 1e-6, show: {show}}}
analysts:
  ana: {own}
  ben: {{visits: {{epsilon: {cap}}}}}
groups:
  interns: {{members: [ana], visits: {{epsilon: {group}}}}}
"""
COUNT = "SELECT COUNT(*) AS n FROM visits"
CHOSEN = f"{COUNT} -- noise = 'gaussian'"


def write(folder: Path, *, rows: int = 30, **settings: Any) -> None:
    lines = [f"{'abc'[i % 3]},{i % 90},{i % 7}" for i in range(rows)]
    (folder / "visits.csv").write_text("\n".join(["site,cost,other", *lines]) + "\n")
    given = {"cap": "1", "own": "{}", "group": "1", "show": "rounded", "reuse": "asked"} | settings
    (folder / "hubbub.yaml").write_text(YAML.format(**given))


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    write(tmp_path)
    with open_session(tmp_path / "hubbub.yaml", analyst="ana") as opened:
        yield opened


def asked(session: Session, **options: Any) -> int:
    """Ask for fresh noise until the budget is used up."""
    count = 0
    while True:
        try:
            session.query(COUNT, key=f"{options} {count}", **options)
        except BudgetError:
            return count
        count += 1
        assert count < 100


def test_more_queries_of_one_accuracy_fit_into_a_cap(tmp_path: Path) -> None:
    fitting, errors = {}, {}
    given: dict[str, dict[str, Any]] = {"chosen": {}, "pure": {"delta": 0}}
    for name, options in given.items():
        folder = tmp_path / name
        folder.mkdir()
        write(folder, show="exact")
        with open_session(folder / "hubbub.yaml", analyst="ana") as session:
            estimate = session.estimate(COUNT, within=50, **options)
            errors[name] = estimate.expected[0].plus_minus
            fitting[name] = asked(session, within=50, **options)
            assert estimate.fits == fitting[name]
        assert (estimate.noise, estimate.delta > 0) == (("gaussian", True) if name == "chosen" else ("laplace", False))
        assert bool(estimate.choice) == (name == "chosen")
        if name == "chosen":
            text = estimate.choice
    # 16 counts with scale 50/ln 20 have pure losses that add up to 1; Gaussian noise of deviation 50/1.96 costs 1/650
    assert fitting["pure"] == 16
    assert fitting["chosen"] >= 2 * 16
    assert max(errors.values()) <= 50
    assert f"{fitting['chosen']} such queries" in text
    assert f"{fitting['pure']} with Laplace noise (ε = 0.0594)" in text


def test_laplace_noise_stays_where_less_than_twice_as_many_fit_or_without_delta(session: Session) -> None:
    given: tuple[dict[str, Any], ...] = (
        {"within": 28},
        {"within": 45},
        {"within": 300, "delta": 0},
        {"epsilon": "0.01"},
    )
    for options in given:
        estimate = session.estimate(COUNT, **options)
        assert (estimate.noise, estimate.choice) == ("laplace", "")
        assert not estimate.delta


def test_a_kind_of_noise_can_be_asked_for(session: Session) -> None:
    for noise in ("laplace", "gaussian"):
        estimate = session.estimate(COUNT, within=300, noise=noise)
        assert (estimate.noise, estimate.choice) == (noise, "")
    paid = session.query(COUNT, within=300)
    assert session.query(COUNT, epsilon=paid.epsilon, noise="gaussian", free=True).document() == paid.document()
    with pytest.raises(ParameterError, match="HB553"):
        session.estimate(COUNT, epsilon="0.1", noise="normal")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="HB553"):
        session.estimate(COUNT, epsilon="0.1", delta=0, noise="gaussian")
    with pytest.raises(ParameterError, match="HB147"):
        session.estimate("CALL moments(table => 'visits', columns => ['cost'])", epsilon="0.1", noise="gaussian")


def test_choices_of_values_take_the_cheaper_selection(session: Session) -> None:
    estimate = session.estimate("SELECT MEDIAN(cost) FROM visits", within="10%")
    release = session.query("SELECT MEDIAN(cost) FROM visits", within="10%")
    assert estimate.choice
    assert "exponential" in str(release.receipt["event"])
    assert check_receipt(release.document()).sound


def test_a_charge_is_planned_again_from_its_receipt(tmp_path: Path) -> None:
    write(tmp_path)
    with open_session(tmp_path / "hubbub.yaml", analyst="ana") as session:
        release = session.query(COUNT, within=300)
        assert release.receipt["query"] == CHOSEN
        assert session.query(COUNT, within=300).replayed
    number = release.receipt["ledger"][0]["sequence"]
    found = audit(load(tmp_path / "hubbub.yaml"), number, worlds=2, chance=random.Random(1))
    assert found.problems == []
    assert found.left_out == []


def test_the_same_price_without_a_target_is_another_query(session: Session) -> None:
    first = session.query(COUNT, within=300)
    second = session.query(COUNT, epsilon=first.epsilon)
    assert not second.replayed
    assert second.receipt["query"] == COUNT
    assert not second.delta


@pytest.mark.parametrize("key", [None, "mine"])
def test_a_charge_from_before_is_still_free(session: Session, key: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(Planner, "noise", lambda *_: noise_choice.AS_ASKED)
        first = session.query(COUNT, within=300, key=key)
    again = session.query(COUNT, within=300, key=key)
    assert (again.replayed, again.rows, again.receipt["query"]) == (True, first.rows, COUNT)
    assert session.query(COUNT, within=299, key=key and "other").receipt["query"] == CHOSEN


def test_a_key_that_was_used_for_another_price_is_refused(session: Session) -> None:
    session.query(COUNT, within=300, key="mine")
    with pytest.raises(ParameterError, match="HB124"):
        session.query(COUNT, epsilon="0.5", key="mine")


def test_the_choice_does_not_depend_on_data_spending_or_hidden_caps(tmp_path: Path) -> None:
    seen = []
    given: tuple[dict[str, Any], ...] = (
        {"show": "hidden"},
        {"show": "hidden", "group": "0.2"},
        {"show": "hidden", "cap": "50", "own": "{visits: {epsilon: 1}}", "rows": 3000},
    )
    for place, settings in enumerate(given):
        folder = tmp_path / str(place)
        folder.mkdir()
        write(folder, **settings)
        with open_session(folder / "hubbub.yaml", analyst="ana") as session:
            for spend in ("0.005", "0.003"):
                for within in (28, 45, 60, 300):
                    estimate = session.estimate(COUNT, within=within)
                    seen.append((place, spend, within, estimate.noise, estimate.epsilon, estimate.choice))
                session.query("SELECT SUM(cost) AS s FROM visits", epsilon=spend)
    by_within = {within: {row[3:] for row in seen if row[2] == within} for within in (28, 45, 60, 300)}
    assert all(len(choices) == 1 for choices in by_within.values())
    assert len({choice for (choice,) in ((next(iter(each))[0],) for each in by_within.values())}) == 2


def test_a_shown_cap_that_is_smaller_decides(tmp_path: Path) -> None:
    write(tmp_path, group="0.2")
    with open_session(tmp_path / "hubbub.yaml", analyst="ana") as session:
        small = session.estimate(COUNT, within=60)
    assert small.noise == "laplace"


def test_paying_for_the_rest_keeps_the_chosen_noise(tmp_path: Path) -> None:
    write(tmp_path, reuse="always")
    with open_session(tmp_path / "hubbub.yaml", analyst="ana") as session:
        session.query(COUNT, within=100)
        combined = session.query(COUNT, within=90, combine=True)
        charges = [each.query for each in session.releases()]
    assert charges.count(CHOSEN) == 3
    assert "derived" in combined.receipt
