"""The figures that the screens show, against the papers and against arithmetic of their own."""

import math
from statistics import NormalDist

import pytest

from hubbub.attacks.screens import SCREENS
from hubbub.semantics.screens.base import Reading
from hubbub.semantics.screens.figures import Bars, Curves


def read(screen: str, **given: str) -> Reading:
    return SCREENS[screen].read(given)


def table(reading: Reading) -> dict[str, tuple[str, ...]]:
    return {row[0]: row[1:] for row in reading.rows}


def curve(reading: Reading, name: str) -> dict[float, float]:
    assert isinstance(reading.figure, Curves)
    return dict(dict(reading.figure.series)[name])


@pytest.mark.row(9)
def test_an_informed_adversary_at_ln_3() -> None:
    """½ becomes ¾; the factor for a rare fact tends to 3."""
    rows = table(read("informed"))
    assert rows["50.0%"] == ("25.0%", "75.0%", "2")
    assert rows["0.0001%"][-1] == "3"
    shown = curve(read("informed", epsilon="1"), "after the answer 1")
    assert shown[0.25] == pytest.approx(0.25 * math.e / (0.25 * math.e + 0.75))


@pytest.mark.row(8)
@pytest.mark.parametrize(
    ("unknown", "default", "apart", "filled"), [("1", "1", "1", "0.5"), ("1", "0", "1", "1"), ("2", "2", "2", "2")]
)
def test_a_simulator_fills_in_the_default(unknown: str, default: str, apart: str, filled: str) -> None:
    """Each unknown value of 0, 1 or 2 moves the sum by at most 2, and by at most 1 from the middle."""
    rows = table(read("simulator", unknown=unknown, default=default))
    (loss,) = [cells for name, cells in rows.items() if name.startswith("privacy loss")]
    assert loss == (apart,)
    assert rows["simulator that fills in the default"] == (filled,)
    assert float(rows["best possible simulator"][0]) <= float(filled)


def test_the_simulated_answers_are_those_of_the_filled_in_data() -> None:
    """The data 0, 0 with a default of 1 in the first place: the answers are centered on 1 instead of 0."""
    figure = read("simulator").figure
    assert isinstance(figure, Bars)
    real, simulated = (dict(zip(figure.groups, heights, strict=True)) for _, heights in figure.series)
    assert max(real, key=real.__getitem__) == "0"
    assert max(simulated, key=simulated.__getitem__) == "1"
    assert simulated["1"] == real["0"]


@pytest.mark.row(21)
def test_a_hundred_ones_surprise_on_the_screen() -> None:
    """The paper's variance gives the ratio .165 and the belief .858; the exact one, 1/(1 + exp(−199/2σ²))."""
    rows = table(read("oblivious"))
    assert rows["Gaussian with the variance as printed, ln(1/δ)/ε²"] == ("0.1652", "85.8%", "35.8%")
    ratio = float(rows["Gaussian"][0])
    assert rows["Gaussian"][1] == f"{100 / (1 + ratio):.1f}%"
    assert rows["any ε-private mechanism, at most"][1] == "62.3%"  # e^½/(1 + e^½), rounded up


@pytest.mark.row(11, 12, 14)
def test_beliefs_and_privacy_bound_each_other() -> None:
    """ε = .4: tanh(.2) and back; one bit gives s = .0997, whose printed 3s is below .4."""
    rows = table(read("beliefs"))
    assert rows["ε-private ⇒ beliefs within"] == ("0.1974", "0.1974", "0.4918")
    assert rows["beliefs within s ⇒ private at"] == ("0.4", "0.4", "0.299")
    assert table(read("beliefs", epsilon="1"))["ε-private ⇒ beliefs within"][1] == "0.4621"
    s = 0.0997
    odds = ((1 + s) / (1 - s)) ** 2
    excess = odds / (1 + odds) - math.exp(3 * s) / (1 + odds)
    converse = read("converse")
    assert f"its δ is {excess:.4g} instead of 0" in converse.sentences[1]
    assert float(converse.rows[0][1]) == pytest.approx(4 * math.atanh(s), abs=1e-4)


@pytest.mark.row(13, 115)
def test_beliefs_under_delta_beside_the_printed_theorem() -> None:
    """At (.1, 10⁻¹², 10⁶) the theorem has e^.3 − 1 + .002 = .352 and .004; at ε = 1 it is vacuous, and ours is not."""
    rows = table(read("approximate", epsilon="0.1"))
    assert rows["as printed"] == ("0.3519", "0.004")
    assert float(rows["this one"][0]) < 0.2
    one = read("approximate", epsilon="1")
    assert math.tanh(0.5) < float(table(one)["this one"][0]) <= 0.55
    assert "vacuous" in one.sentences[1]
    assert "no bound" in read("approximate", delta="0.01").sentences[0]


@pytest.mark.row(19)
def test_exceptions_add_to_delta() -> None:
    """δ₂ = 10⁻¹² + 3·10⁻¹² is shown, and the bound is that of δ₂ everywhere."""
    local, plain = read("local"), read("approximate", epsilon="0.1", delta="4e-12")
    assert "4e-12 everywhere" in local.sentences[0]
    assert table(local)["3e-12"][0] == table(plain)["this one"][0]


@pytest.mark.row(20)
def test_noise_for_a_local_sensitivity_leaks() -> None:
    """Split data in a range of 8: noise for 1 at ε = ½ loses 4, noise for 8 keeps ½, noise for none is unbounded."""
    reading = read("local-sensitivity")
    rows = table(reading)
    assert rows["a sensitivity of 1"] == ("0", "4")
    assert rows["the worst case, 8"] == ("0", "0.5")
    assert "ε = ∞" in reading.sentences[-1]


@pytest.mark.row(15, 16, 17)
def test_the_parts_of_the_lemma() -> None:
    """ε = .5, δ = .01: .0348 outside e^{±2ε}, above the printed .0243; the statistical difference within .2525."""
    rows = table(read("lemma"))
    assert rows["2: probability of a ratio outside e^±2ε"] == ("0.03476", "0.03477", "0.02426")
    attained, bound, printed = rows["5: statistical difference"]
    assert float(attained) <= float(bound) == pytest.approx((math.exp(0.5) - 1 + 0.02) / (math.exp(0.5) + 1), abs=1e-4)
    assert float(printed) == pytest.approx(math.exp(0.5) - 1 + 0.01, abs=1e-4)
    # with probability .99 the pair with δ = .01, with probability .01 one that differs in everything
    assert rows["3, 4: δ of joint distributions"][0] == "0.0199"


@pytest.mark.row(18)
def test_rare_hints_need_the_exception_of_the_conditioning_lemma() -> None:
    rows = table(read("conditioning"))
    rare = 2e-4 / (1 - (1 - 0.02) * math.exp(-0.02))
    assert float(rows["answers that break (3ε, d), in this example"][0]) == pytest.approx(rare, rel=1e-3)
    assert rare < float(rows["bound"][0])


@pytest.mark.row(1, 2)
def test_the_definition_on_three_mechanisms() -> None:
    """RR(¾) loses 1.0986; Laplace noise loses ε and no δ; Gaussian noise has the δ it is calibrated to, and no ε."""
    assert "largest log-ratio of these answers is 1.099." in read("indistinguishable").sentences[1]
    laplace = read("indistinguishable", mechanism="laplace", epsilon="0.5")
    assert "is 0.5." in laplace.sentences[1]
    assert "the least such δ is 0." in laplace.sentences[2]
    noisy = read("indistinguishable", mechanism="gaussian", epsilon="0.5", delta="0.05")
    assert "no ε alone holds" in noisy.sentences[1]
    assert "the least such δ is 0.05." in noisy.sentences[2]


@pytest.mark.row(22)
def test_the_best_test_meets_the_bound() -> None:
    """ε = 1, α = .05: e/20; Gaussian noise for (1, 10⁻⁵) has Φ(Φ⁻¹(.05) + 1/σ), which is below."""
    rows = table(read("test"))
    assert rows["randomized response, attained"] == (f"{5 * math.e:.1f}%",)
    assert rows["any ε-private mechanism"] == ("13.6%",)
    normal = NormalDist()
    power = normal.cdf(normal.inv_cdf(0.05) + 1 / 3.7306)  # the least σ at (1, 10⁻⁵)
    assert 0 <= float(rows["Gaussian noise for (ε, δ)"][0].rstrip("%")) - 100 * power < 0.3
    bound = curve(read("test", level="0.5"), "any ε-private mechanism, at most")
    assert bound[0.5] == pytest.approx(1 - 0.5 / math.e)


@pytest.mark.row(5)
def test_a_random_row_has_a_small_difference_and_no_epsilon() -> None:
    rows = table(read("difference"))
    assert rows["statistical difference of neighbors"] == ("0.01",)
    assert rows["ε"] == ("∞",)


@pytest.mark.row(107)
def test_a_useful_release_is_a_key() -> None:
    """From a coin flip to 9 of 10 at a margin of ±6, and to nothing when the buckets are narrower than the noise."""
    useful = read("pad")
    assert "right with 50.0%" in useful.sentences[1]
    assert curve(useful, "with the release")[0.5] > 0.9
    assert curve(read("pad", width="1"), "with the release")[0.01] < 0.51
    assert "hubbub explain pad" in " ".join(read("dalenius", n="5").sentences)


@pytest.mark.row(108)
def test_no_premium_rises_by_more_than_the_factor() -> None:
    """10 % becomes 27.2 %; an insurer with a threshold attains e, and none lies above the bound."""
    reading = read("insurer")
    assert "at most 27.2%" in reading.sentences[1]
    actual = curve(reading, "an insurer with a threshold")
    for without, chance in actual.items():
        assert chance <= min(math.e * without, 1 - (1 - without) / math.e) + 1e-9
    assert max(chance / without for without, chance in actual.items()) == pytest.approx(math.e)
    assert "more than 2.72 times as likely, plus 0.01." in read("insurer", delta="0.01").sentences[1]
    assert table(read("insurer", delta="0.01"))["1.0%"] == ("3.8%",)  # e/100 + .01, rounded up


@pytest.mark.row(7, 104)
def test_two_epsilons_and_a_group_add_up() -> None:
    rows = table(read("composition", epsilon="0.3", second="0.7", size="5"))
    assert rows["both releases"] == ("1", "1")
    assert rows["group of 5"] == ("1.5", "1.5")
    grown = 1e-6 * math.expm1(2) / math.expm1(0.5)
    said = read("composition", size="4", delta="1e-6").sentences[-1].rpartition(" ")[2].rstrip(".")
    assert grown <= float(said) <= grown * 1.001


@pytest.mark.row(112)
def test_bits_about_one_person() -> None:
    """1 − h(1/(1 + e)) bits about a fact at ε = 1; one random row of a thousand tells 1/1000 and is not private."""
    rows = table(read("information"))
    p = 1 / (1 + math.e)
    entropy = -p * math.log2(p) - (1 - p) * math.log2(1 - p)
    assert 0 <= float(rows["any ε-private one: a yes-or-no fact"][0]) - (1 - entropy) < 1e-4
    assert rows["one random row of 1,000 in the clear"] == ("0.001", "no")


def test_what_cannot_be_promised_names_where_to_look() -> None:
    """Every screen that the list refers to exists; ten people at ε = .1 reach e/(1 + e)."""
    reading = read("limits")
    named = {name.strip() for row in reading.rows for name in row[2].split(",")}
    assert named - set(SCREENS) == {"hubbub attack linkage", "--epsilon 7", "docs/threat-model.md"}
    assert "to 73.2%" in reading.sentences[1]
