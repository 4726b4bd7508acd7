"""The sentences of `hubbub explain` and of the page, against formulas computed in another way."""

import re
from fractions import Fraction

import mpmath
import pytest

from hubbub.errors import ParameterError
from hubbub.semantics.explanation import Explanation, explain
from hubbub.semantics.odds import meaning

EPSILONS = ("0.01", "0.1", "0.5", "1", "3", "10")


def figures(text: str) -> list[float]:
    return [float(each.replace(",", "")) for each in re.findall(r"\d[\d,]*(?:\.\d+)?(?:e-\d+)?", text)]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_sentence_on_beliefs_is_tanh(epsilon: str) -> None:
    said = explain(epsilon=epsilon).beliefs
    formula = 100 * mpmath.tanh(mpmath.mpf(epsilon) / 2)
    if "almost 100" in said:
        assert formula > 99.9
    else:
        (shown,) = figures(said)
        assert -1e-12 <= shown - formula < 0.1
    assert said.startswith("One person's data changes any belief by at most ")


@pytest.mark.row(13, 115)
@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "0.5", "1"])
@pytest.mark.parametrize(("delta", "people"), [("1e-12", 10**6), ("1e-9", 1000)])
def test_the_sentence_on_beliefs_under_delta_is_its_formula(epsilon: str, delta: str, people: int) -> None:
    """The least (E − 1 + 2d)/(E + 1) over η at the printed 4√(nδ); beside it the printed bound, or that it has none."""
    e, d = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(delta)
    chance = 4 * mpmath.sqrt(people * d)

    def level(eta: "mpmath.mpf") -> "mpmath.mpf":
        slip = d / (1 - mpmath.exp(-eta))
        ways = []
        for way, wrong, before in ((1, slip, 0), (2, d, slip * (1 + mpmath.exp(-eta) / e))):
            left = chance / people - d - before
            growth, kept = e**way * mpmath.exp(eta), (1 + e) * wrong / left
            ways.append((growth - 1 + 2 * kept) / (growth + 1) if left > 0 else mpmath.mpf(1))
        return min(ways)

    moved = 100 * min(level(mpmath.mpf(10) ** (-mpmath.mpf(k) / 60)) for k in range(1, 300))
    said = explain(epsilon=epsilon, delta=delta, people=people).beliefs
    shown, failing = figures(said.partition(" (")[0])
    assert -0.01 <= shown - moved < 0.11
    assert -1e-12 <= failing - chance <= 0.01 * chance
    printed = 100 * (e**3 - 1 + chance / 2)
    if printed >= 100:
        assert said.endswith(" (Kasiviswanathan and Smith 2014, Theorem 2.4, says nothing here).")
    else:
        beside = figures(said.partition("Theorem 2.4, has ")[2])[0]
        assert 0 <= beside - printed < 0.1 + 1e-9


def test_beliefs_are_not_spoken_of_where_nothing_is_known() -> None:
    assert "specify n" in explain(epsilon=1, delta="1e-9").beliefs
    said = explain(epsilon=1, delta="0.01", people=10**6).beliefs
    assert said == "At this δ and n, there is no bound on how far one person's data changes a belief."
    # 4√(nδ) is 400: the chance that is left is no chance
    assert 4 * (10**6 * 0.01) ** 0.5 > 1


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_icons_are_a_hundred_and_as_many_as_the_sentence_says(epsilon: str) -> None:
    found = explain(epsilon=epsilon)
    marks = "".join(found.icons()).replace(" ", "")
    assert len(marks) == 100
    assert marks.count("●") == 50
    (_, right, coin) = figures(found.meaning.guesses)
    assert 50 + marks.count("◉") == right
    assert coin == 50
    e = mpmath.exp(mpmath.mpf(epsilon))
    assert 0 <= right - 100 * e / (e + 1) < 1


@pytest.mark.parametrize("size", [1, 2, 10, 1000])
def test_a_group_of_any_size_is_explained(size: int) -> None:
    (said,) = [text for text in explain(epsilon="0.01", size=size).sentences if text.startswith("For a group")]
    assert said.startswith(f"For a group of {size:,} p")
    assert figures(said)[-1] == size / 100
    factor = mpmath.exp(mpmath.mpf(size) / 100)
    shown = figures(said)[1]
    assert 0 <= shown - factor <= max(0.01, 0.01 * factor)


def test_sentences_are_those_of_their_meaning() -> None:
    found = explain(epsilon=1, delta="1e-6", people=50_000, prior=Fraction(1, 4), size=3)
    plain = meaning(epsilon=Fraction(1), delta=Fraction(1, 10**6), prior=Fraction(1, 4), people=50_000)
    assert found.meaning == plain
    assert found.sentences == (
        plain.belief,
        plain.rare,
        plain.odds,
        found.exceedance,
        plain.guesses,
        plain.test,
        plain.consequence,
        plain.family_of(3),
        found.beliefs,
        found.bits,
        found.comparison,
    )
    assert found.warnings == plain.warnings
    assert found.heading == "ε = 1, δ = 1e-06, 50,000 people"
    form = found.to_json()
    assert form["sentences"] == list(found.sentences)
    curve = dict(form["tradeoff"])  # type: ignore[call-overload]
    assert curve[0.05] == pytest.approx(float(mpmath.e) * 0.05 + 1e-6, abs=1e-12)
    assert isinstance(found, Explanation)


@pytest.mark.row(13)
def test_a_delta_that_is_too_large_for_the_people_is_warned_of() -> None:
    """δ ≥ ε²/n, from the very number on."""
    assert any("ε²/n" in text for text in explain(epsilon="0.1", delta="1e-5", people=1000).warnings)
    assert not any("ε²/n" in text for text in explain(epsilon="0.1", delta="9.9e-6", people=1000).warnings)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": "0"},
        {"epsilon": "1", "delta": "2"},
        {"epsilon": "1", "people": 0},
        {"epsilon": "1", "size": 0},
        {"epsilon": "1", "prior": "1.5"},
        {"epsilon": "nan"},
    ],
)
def test_nonsense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ParameterError, match="HB10"):
        explain(**wrong)  # type: ignore[arg-type]


@pytest.mark.row(114)
@pytest.mark.parametrize(
    ("epsilon", "delta", "chance", "ratio"), [("1", "1e-5", 1.62e-4, 16.2), ("0.1", "1e-12", 3.98e-10, 398)]
)
def test_delta_is_not_the_chance_that_odds_rise_by_more(epsilon: str, delta: str, chance: float, ratio: float) -> None:
    """Gaussian noise calibrated to (1, 1e-5): the odds of the truth rise by more than e in 16 δ of the answers."""
    said = explain(epsilon=epsilon, delta=delta).exceedance
    assert figures(said)[-2:] == [chance, ratio]
    assert explain(epsilon=epsilon).exceedance == ""
    assert explain(epsilon=20, delta=delta).exceedance == ""  # a factor of 4.9e8 is no guarantee
    assert explain(epsilon=100).beliefs.startswith("At this ε, there is no bound")


@pytest.mark.row(112)
def test_bits_are_shown_rounded_up() -> None:
    """1 − h(1/(1 + e)) is 0.16006 bits, and ln(e − 1) + 1/(e − 1) − 1 is 0.17789 bits."""
    flip = 1 / (1 + mpmath.e)
    fact = 1 + flip * mpmath.log(flip, 2) + (1 - flip) * mpmath.log(1 - flip, 2)
    person = (mpmath.log(mpmath.e - 1) + 1 / (mpmath.e - 1) - 1) / mpmath.log(2)
    assert (round(float(fact), 5), round(float(person), 5)) == (0.16006, 0.17789)
    assert figures(explain(epsilon=1).bits) == [0.161, 0.178]
    assert figures(explain(epsilon=1, delta="1e-6").bits) == [0.161]
    assert "at most 1 bit about" in explain(epsilon=60).bits
