"""The game as a screen: posteriors against Bayes in floating point, for tables that a reader may fill in."""

import json
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import pytest

from hubbub.core.events import Composed, Event, GaussianEvent, LaplaceEvent, ResponseEvent, to_facts
from hubbub.errors import ParameterError
from hubbub.semantics.history import QueryHistory
from hubbub.semantics.screens.base import Reading
from hubbub.semantics.screens.figures import Bars
from hubbub.semantics.screens.game import SCREEN
from hubbub.semantics.screens.ledger_game import ledger_game

Rows = tuple[int, ...]


def heights(reading: Reading) -> dict[str, list[float]]:
    """The three beliefs (before, game 0, game i) in the secret and in each database."""
    assert isinstance(reading.figure, Bars)
    columns = [values for _, values in reading.figure.series]
    return {group: [column[place] for column in columns] for place, group in enumerate(reading.figure.groups)}


def bayes(
    belief: dict[Rows, float], likelihood: Callable[[Rows], float], person: int | None, default: int = 0
) -> dict[Rows, float]:
    """Bayes' rule, with one person's value replaced before the mechanism sees it."""

    def seen(rows: Rows) -> Rows:
        return tuple(default if place == person else row for place, row in enumerate(rows))

    weights = {rows: chance * likelihood(seen(rows)) for rows, chance in belief.items()}
    return {rows: weight / sum(weights.values()) for rows, weight in weights.items()}


def check(reading: Reading, belief: dict[Rows, float], likelihood: Callable[[Rows], float], person: int) -> None:
    found = heights(reading)
    real, other = bayes(belief, likelihood, None), bayes(belief, likelihood, person)
    for rows, before in belief.items():
        assert found["".join(map(str, rows))] == pytest.approx([before, real[rows], other[rows]], abs=1e-9)


@pytest.mark.row(10)
def test_a_noisy_count_with_a_prior_a_secret_and_side_information() -> None:
    """Weights 1, 2, 3, 4; it is known that somebody has a 1; the secret is that both have; the answer is 2."""
    given = {"mechanism": "laplace", "epsilon": "0.5", "prior": "00=1,01=2,10=3,11=4", "known": "1,*1"}
    reading = SCREEN.read(given | {"secret": "11", "answer": "2", "person": "2"})
    belief: dict[Rows, float] = {(0, 0): 0.0, (0, 1): 2 / 9, (1, 0): 3 / 9, (1, 1): 4 / 9}
    check(reading, belief, lambda rows: math.exp(-0.5 * abs(2 - sum(rows))), 1)
    assert reading.rows[-1][:3] == ("secret", "40.0%", "44.4%")
    assert heights(reading)["secret"] == heights(reading)["11"]


@pytest.mark.row(10)
def test_randomized_response_of_three_people_and_of_three_values() -> None:
    """Each person's answer is true with odds e^ε against each other value."""
    reading = SCREEN.read({"people": "3", "epsilon": "1", "answer": "110", "person": "3"})
    worlds = dict.fromkeys(product((0, 1), repeat=3), 1 / 8)
    check(reading, worlds, lambda rows: math.exp(-sum(a != b for a, b in zip(rows, (1, 1, 0), strict=True))), 2)
    reading = SCREEN.read({"values": "3", "epsilon": "2", "answer": "21", "default": "1"})
    worlds = dict.fromkeys(product((0, 1, 2), repeat=2), 1 / 9)
    likelihood = lambda rows: math.exp(-2 * sum(a != b for a, b in zip(rows, (2, 1), strict=True)))  # noqa: E731
    found, other = heights(reading), bayes(worlds, likelihood, 0, 1)
    assert found["21"][2] == pytest.approx(other[2, 1], abs=1e-9)


def test_gaussian_noise_exceeds_the_bound_of_pure_privacy_in_some_answers() -> None:
    """A count of one person, δ = .05: its ends are exact by the variance that the sentence's noise must have."""
    reading = SCREEN.read({"mechanism": "gaussian", "people": "1", "epsilon": "0.2", "delta": "0.05", "answer": "0"})
    ratio = heights(reading)["0"][1] / heights(reading)["1"][1]  # exp(1/2σ²)
    variance = 1 / (2 * math.log(ratio))
    # the least δ at ε = .2 of discrete Gaussian noise, by its sum
    masses = {z: math.exp(-z * z / (2 * variance)) for z in range(-80, 81)}
    excess = sum(max(0.0, masses[z] - math.exp(0.2) * masses.get(z - 1, 0.0)) for z in masses) / sum(masses.values())
    assert excess == pytest.approx(0.05, abs=1e-6)
    assert "no bound holds for every answer" in reading.sentences[-1]


@pytest.mark.row(10, 11)
def test_the_worst_question_of_two_people_attains_the_bound_and_delta_publishes() -> None:
    """For the belief in 11 or 10, half and half, the exclusive or at ε = 1 moves it by tanh(½): 46.2 points."""
    given = {"mechanism": "worst", "delta": "0", "prior": "11=1,10=1", "secret": "11"}
    reading = SCREEN.read(given)
    found = heights(reading)["secret"]
    assert abs(found[1] - found[2]) == pytest.approx(math.tanh(0.5), abs=1e-9)
    assert "46.3 points" in reading.sentences[-1]
    leaky = SCREEN.read(given | {"delta": "0.01", "answer": "data=11"})
    assert heights(leaky)["secret"] == [0.5, 1.0, 0.0]
    assert leaky.rows[-1][-1] == "impossible"
    assert "with probability 1.0%" in leaky.sentences[-1]


def test_an_epsilon_of_nothing_moves_nothing() -> None:
    found = heights(SCREEN.read({"mechanism": "worst", "epsilon": "0", "delta": "0"}))
    assert all(a == b == c for a, b, c in found.values())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"known": "00", "prior": "11=1"}, "rules out every database"),
        ({"prior": "00=0"}, "All prior weights are 0"),
        ({"prior": "22=1"}, "is not the weight of a database"),
        ({"secret": "7"}, "matches no database"),
        ({"secret": "1,,0"}, "matches no database"),
        ({"people": "3", "values": "3"}, "more than 9 databases"),
        ({"person": "3"}, "not part of the game"),
        ({"answer": "maybe"}, "not a possible answer"),
    ],
)
def test_tables_that_make_no_game_are_refused(given: dict[str, str], words: str) -> None:
    with pytest.raises(ParameterError, match="HB694") as caught:
        SCREEN.read(given)
    assert words in caught.value.message


def test_the_answer_of_the_screen_moves_the_belief_most() -> None:
    given = {"mechanism": "laplace", "prior": "00=5,01=1,10=1,11=2", "epsilon": "1"}
    most = {}
    for answer in range(-4, 7):
        found = heights(SCREEN.read(given | {"answer": str(answer)}))
        most[answer] = sum(abs(b - c) for name, (_, b, c) in found.items() if name != "secret") / 2
    chosen = heights(SCREEN.read(given))
    moved = sum(abs(b - c) for name, (_, b, c) in chosen.items() if name != "secret") / 2
    assert moved == pytest.approx(max(most.values()), abs=1e-12)
    assert Fraction(1, 100) < moved


def history(event: Event | None, *, epsilon: str, delta: str = "0") -> QueryHistory:
    facts = Counter() if event is None else Counter([json.dumps(to_facts(event), sort_keys=True)])
    caps = {"cap_epsilon": Fraction(epsilon), "cap_delta": Fraction(delta)}
    return QueryHistory("everybody", "visits", facts, written_off=False, by_block=False, **caps)


def test_a_ledger_of_several_mechanisms_is_added_up_and_listed() -> None:
    """Three answers of ½ and a quarter: a fair bit becomes e^1.25/(1 + e^1.25) at worst."""
    parts = ((LaplaceEvent(1, Fraction(2)), 2), (ResponseEvent(2, Fraction(1, 4)), 1))
    reading = ledger_game({"people": "1"}, history(Composed(parts), epsilon="3"))
    assert "2 × laplace, 1 × response" in reading.sentences[0]
    assert "they cost ε = 1.25." in reading.sentences[0]
    assert heights(reading)["secret"][1] == pytest.approx(1 / (1 + math.exp(-1.25)), abs=1e-9)
    empty = ledger_game({}, history(None, epsilon="3"))
    assert "There is nothing to learn from." in empty.sentences[0]


@pytest.mark.parametrize("event", [GaussianEvent(1, Fraction(9)), LaplaceEvent(50, Fraction(1))])
def test_a_ledger_that_bounds_nothing_is_refused(event: Event) -> None:
    """Gaussian noise without a δ has no ε, and an ε of 50 bounds no belief."""
    with pytest.raises(ParameterError, match="HB694"):
        ledger_game({}, history(event, epsilon="60"))
