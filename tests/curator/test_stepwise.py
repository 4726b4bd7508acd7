"""Answers that are bought until one is exact enough: on noise written by hand, and on a real session."""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import hubbub
from hubbub.answers.release import Output, Release
from hubbub.answers.stepwise import STEPS, WIDER, query_within
from hubbub.cli import main
from hubbub.errors import ParameterError

YAML = """
version: 1
datasets:
  visits:
    source: visits.csv
    unit: row
    columns: {age: {type: integer, bounds: [0, 99]}}
    budget: {epsilon: 3}
analysts: {ana: {visits: {epsilon: 3}}}
"""


class Noisy:
    """A session whose count has the stated noise at ε, in deviations of its 95% margin 3/ε."""

    def __init__(self, truth: float, *noises: float) -> None:
        self.truth, self.noises, self.asked = truth, list(noises), list[Fraction]()

    def query(self, sql: str, *, key: str | None = None, **options: Any) -> Release:  # noqa: ARG002
        epsilon = Fraction(options["epsilon"])
        half = 3 / float(epsilon)
        value = self.truth + half * (self.noises[len(self.asked)] if len(self.asked) < len(self.noises) else 0.0)
        self.asked.append(epsilon)
        output = Output("n", "real", [value], [value - half], [value + half])
        return Release((output,), [None], epsilon, Fraction(0), {"data": []}, None, False)  # noqa: FBT003


def test_answers_are_bought_until_one_is_exact_enough() -> None:
    large = Noisy(100_000)
    reached = query_within(large, "q", within="5%", at_most=1)
    assert reached.met
    assert large.asked == [Fraction(1, 32)], "a large count is exact enough at once"
    middle = Noisy(1_000)
    reached = query_within(middle, "q", within="5%", at_most=1)
    assert reached.met
    assert len(middle.asked) == 2
    needed = 3 * WIDER / 50  # the ε at which the margin of 1,000 is 5%
    assert needed < middle.asked[1] < 1.4 * needed
    assert reached.spent == sum(middle.asked) < 1
    absolute = query_within(Noisy(0), "q", within=20, at_most=1)
    assert absolute.met
    assert absolute.margins[0][0] <= 20


@pytest.mark.parametrize("noises", [(), (1, 1, 1, 1), (-1, -1, -1, -1), (-3, 2, -1, 0)])
@pytest.mark.parametrize("truth", [0, 3, 50, 400, 10**6])
def test_the_limit_is_never_passed(truth: int, noises: tuple[float, ...]) -> None:
    for limit in (Fraction(1), Fraction(1, 3), Fraction(1, 10**6)):
        session = Noisy(truth, *noises)
        reached = query_within(session, "q", within="5%", at_most=limit)
        assert reached.spent == sum(session.asked) <= limit
        assert len(session.asked) <= STEPS
        assert reached.met == (reached.margins[0][0] <= 0.05 * abs(float(str(reached.release.rows[0][0]))))
        assert reached.met or reached.spent == limit


def test_the_margin_of_the_last_answer_holds_by_enumeration() -> None:
    """The worst rule of stopping misses wherever any answer misses: at most k times one tail, and that is 5%."""
    one = math.exp(-WIDER * math.log(20))
    assert 1 - (1 - one) ** STEPS <= STEPS * one <= 0.05 * (1 + 1e-9)


def test_a_session_buys_and_repeats_for_free(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("age\n" + "".join(f"{i % 100}\n" for i in range(5000)))
    (tmp_path / "hubbub.yaml").write_text(YAML)
    with hubbub.open(tmp_path / "hubbub.yaml") as h:
        sql = "SELECT COUNT(*) AS n FROM visits WHERE age < 50"
        reached = h.query_within(sql, within="5%", at_most=2, key="young")
        # beyond 10 times a 95% margin with e⁻³⁰
        assert abs(float(str(reached.release.rows[0][0])) - 2500) <= 10 * reached.margins[0][0]
        assert reached.met
        assert sum((each.epsilon for each in h.releases()), Fraction(0)) == reached.spent < Fraction(1, 2)
        again = h.query_within(sql, within="5%", at_most=2, key="young")
        assert again.release.rows == reached.release.rows
        assert sum((each.epsilon for each in h.releases()), Fraction(0)) == reached.spent
        with pytest.raises(ParameterError) as refused:
            h.query_within(sql, at_most=1, within=0)
        assert refused.value.code == "HB132"


def test_the_command_buys_stepwise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "visits.csv").write_text("age\n" + "".join(f"{i % 100}\n" for i in range(5000)))
    (tmp_path / "hubbub.yaml").write_text(YAML)
    words = ["query", "SELECT COUNT(*) AS n FROM visits", "-c", str(tmp_path / "hubbub.yaml"), "--at-most", "2"]
    assert main([*words, "--within", "5%"]) == 0
    assert "answers cost" in capsys.readouterr().out
    assert main(words) == 1
    assert "--at-most needs --within" in capsys.readouterr().err
