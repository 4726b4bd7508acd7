"""The games, against Bayes by hand, and the largest difference of beliefs, against beliefs of all kinds."""

from collections.abc import Callable
from fractions import Fraction
from random import Random

import pytest

from hubbub.core.finite import FiniteDistribution, exact_distribution
from hubbub.core.reals import exp
from hubbub.errors import ParameterError
from hubbub.mechanisms.enumeration import worst_over
from hubbub.mechanisms.laplace import Laplace
from hubbub.semantics.bounds import beliefs
from hubbub.semantics.games import Game, databases, semantic_level, uniform, with_default

HALF = Fraction(1, 2)
Response = Callable[[int, Fraction], FiniteDistribution[int]]
Rows = tuple[int, ...]


@pytest.mark.row(10)
def test_posteriors_are_those_of_bayes_worked_out_by_hand(response: Response) -> None:
    """Two people, the answer is a noisy sum's parity with odds 3; the belief is that both bits are alike."""
    prior: dict[Rows, Fraction] = {(0, 0): HALF, (1, 1): Fraction(1, 4), (1, 0): Fraction(1, 4)}
    game: Game[Rows, int] = Game(prior, lambda x: response(x[0] ^ x[1], Fraction(3)), with_default(0), 2)
    real = game.posterior(0)
    assert real is not None
    # ¾·½, ¾·¼ and ¼·¼, over their sum 10/16
    assert {x: low for x, (low, _) in real.mass.items()} == {
        (0, 0): Fraction(3, 5),
        (1, 1): Fraction(3, 10),
        (1, 0): Fraction(1, 10),
    }
    without_first = game.posterior(0, left_out=0)
    assert without_first is not None
    # x₋₁ is (0, x₂): ¾·½, ¼·¼ and ¾·¼, over 10/16
    assert {x: low for x, (low, _) in without_first.mass.items()} == {
        (0, 0): Fraction(3, 5),
        (1, 1): Fraction(1, 10),
        (1, 0): Fraction(3, 10),
    }
    assert game.difference(0, 0) == (Fraction(1, 5), Fraction(1, 5))
    assert game.belief(0, lambda x: x[0] == 1) == (Fraction(2, 5), Fraction(2, 5))
    assert game.evidence(0) == (Fraction(10, 16), Fraction(10, 16))
    assert game.worst(0)[0] >= Fraction(1, 5)


def test_an_answer_that_needs_the_person_is_a_whole_difference() -> None:
    """Somebody's row in the clear: after it, the world without that row cannot have given the answer."""
    game: Game[Rows, int] = Game(
        uniform(databases((0, 1), people=1)), lambda x: exact_distribution({x[0]: Fraction(1)}), with_default(0), 1
    )
    assert game.difference(1, 0) == (Fraction(1), Fraction(1))
    assert game.posterior(1, left_out=0) is None
    assert game.breach(Fraction(99, 100)) == (HALF, HALF)
    with pytest.raises(ParameterError, match="HB176"):
        game.belief(1, lambda _: True, left_out=0)


def test_publishing_a_random_row_is_semantically_worthless() -> None:
    """Statistical difference 1/n between neighbors, and yet no level below 1: Kasiviswanathan and Smith's remark 1."""

    def distribution(rows: Rows) -> FiniteDistribution[tuple[int, int]]:
        return exact_distribution({(place, row): Fraction(1, len(rows)) for place, row in enumerate(rows)})

    worlds = databases((0, 1), people=4)
    assert semantic_level(distribution, worlds, with_default(0), people=4) == (Fraction(1), Fraction(1))


@pytest.mark.row(11)
@pytest.mark.parametrize("people", [2, 3])
def test_response_over_an_exclusive_or_attains_the_bound(response: Response, people: int) -> None:
    """ε-privacy gives tanh(ε/2), attained from two people on; at ε = 1 that is .4621, and e^ε − 1 would be 1.718."""
    for odds in (Fraction(2), Fraction(3), exp(Fraction(1))[0]):

        def distribution(rows: Rows, odds: Fraction = odds) -> FiniteDistribution[int]:
            return response(sum(rows) % 2, odds)

        found = semantic_level(distribution, databases((0, 1), people=people), with_default(0), people=people)
        tanh = (odds - 1) / (odds + 1)
        assert found[0] <= tanh <= found[1] <= found[0] + Fraction(1, 10**30)
    assert abs(found[1] - beliefs(epsilon=Fraction(1))) < Fraction(1, 10**15)
    assert round(float(found[1]), 4) == 0.4621
    # the belief that does it: on a world whose answer fits and one whose answer does not
    game: Game[Rows, int] = Game({(1, 1): HALF, (1, 0): HALF}, distribution, with_default(0), 2)
    assert game.difference(0, 0) == (tanh, tanh)


@pytest.mark.row(10)
def test_no_belief_moves_further_than_the_worst_one() -> None:
    """Random beliefs and mechanisms of two bits: never above the level, and one on two worlds comes close to it."""
    random = Random(7)
    worlds = databases((0, 1), people=2)
    for _ in range(6):
        table = {x: [random.randint(1, 9) for _ in range(3)] for x in worlds}
        distributions = {
            x: exact_distribution({t: Fraction(w, sum(row)) for t, w in enumerate(row)}) for x, row in table.items()
        }
        level = semantic_level(distributions.__getitem__, worlds, with_default(0), people=2)
        seen = Fraction(0)
        for first in worlds:
            for second in worlds:
                for share in range(1, 12):
                    prior = {x: Fraction(0) for x in worlds}
                    prior[first] += Fraction(share, 12)
                    prior[second] += Fraction(12 - share, 12)
                    game: Game[Rows, int] = Game(prior, distributions.__getitem__, with_default(0), 2)
                    seen = max([seen, *[game.worst(t)[1] for t in range(3)]])
        for _ in range(10):
            weights = [random.randint(0, 9) for _ in worlds]
            if sum(weights):
                prior = {x: Fraction(w, sum(weights)) for x, w in zip(worlds, weights, strict=True)}
                game = Game(prior, distributions.__getitem__, with_default(0), 2)
                seen = max([seen, *[game.worst(t)[1] for t in game.transcripts()]])
        assert seen <= level[1]
        assert seen >= level[0] * Fraction(9, 10)


@pytest.mark.row(10)
def test_a_private_count_moves_no_belief_beyond_its_epsilon() -> None:
    """Irrational distributions are enclosed: the clamped Laplace count of three bits, for every belief and for one."""
    noise = Laplace.from_epsilon(sensitivity=1, epsilon="0.5")

    def distribution(rows: Rows) -> FiniteDistribution[int]:
        return noise.distribution(sum(rows), (-3, 6))

    worlds = databases((0, 1), people=3)
    assert worst_over([((0, 0, 0), (0, 0, 1))], distribution).bounds[1] <= Fraction(1, 2) + Fraction(1, 10**30)
    low, high = semantic_level(distribution, worlds, with_default(0), people=3)
    assert 0 < low <= high <= beliefs(epsilon=HALF) + Fraction(1, 10**25)
    game: Game[Rows, int] = Game(uniform(worlds), distribution, with_default(0), 3)
    assert all(game.worst(t)[1] <= high for t in game.transcripts())
    assert game.breach(high)[1] == 0


def test_beliefs_and_distributions_that_cannot_be_are_refused(response: Response) -> None:
    with pytest.raises(ParameterError, match="HB175"):
        Game({0: Fraction(1, 3)}, lambda x: response(x, Fraction(3)), lambda _, __: 0, 1)
    cut = Laplace.from_epsilon(sensitivity=1, epsilon=1)
    with pytest.raises(ParameterError, match="HB177"):
        semantic_level(lambda x: cut.distribution(x[0]), databases((0, 1), people=1), with_default(0), people=1)
