"""Separation of published views and private answers: exact statistical differences over parities."""

from itertools import product
from math import exp, sinh, sqrt, tanh

import numpy as np
import pytest
from scipy.stats import binom

from hubbub.attacks.separations import bounds, table
from hubbub.attacks.separations.parity import (
    Floats,
    bitwise,
    differences,
    histogram_difference,
    joint_differences,
    joint_response,
    noisy_histogram,
    one_parity,
    query_difference,
    query_error,
    repeated,
    response,
    response_difference,
    subset_difference,
    walsh_hadamard,
)
from hubbub.errors import ParameterError
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.randomized_response import RandomizedResponse


def by_hand(distribution: Floats, masks: list[tuple[int, int]]) -> float:
    """The difference from the definition: the mean distribution over two sets of databases, then half the L1 norm."""
    sets = [
        [
            x
            for x in range(len(distribution))
            if all(bin(x & mask).count("1") % 2 == want ^ flip for mask, want in masks)
        ]
        for flip in (0, 1)
    ]
    return float(np.abs(distribution[sets[0]].mean(axis=0) - distribution[sets[1]].mean(axis=0)).sum() / 2)


def subset_distribution(bits: int, size: int, epsilon: float) -> Floats:
    side = 1 << bits
    sets = np.array([[z >> x & 1 for x in range(side)] for z in range(1 << side) if bin(z).count("1") == size])
    distribution = np.where(sets.T == 1, exp(epsilon), 1.0)
    return np.asarray(distribution / distribution.sum(axis=1, keepdims=True))


def schemes(bits: int, people: int, epsilon: float) -> list[Floats]:
    return [
        joint_response(response(bits, epsilon), people),
        joint_response(bitwise(bits, epsilon), people),
        noisy_histogram(bits, people, epsilon),
    ]


@pytest.mark.row(64)
def test_randomized_response_tells_so_much_of_a_parity() -> None:
    assert round(response_difference(6, 1.0), 4) == 0.0261
    assert f"{response_difference(20, 1.0):.1e}" == "1.6e-06"
    for bits, epsilon in product((1, 2, 3, 6), (0.1, 1.0, 3.0)):
        assert differences(response(bits, epsilon))[1:] == pytest.approx(response_difference(bits, epsilon))


def test_written_out_response_is_the_distribution_of_the_mechanism() -> None:
    mechanism = RandomizedResponse.from_truth(answers=8, probability="0.4")
    distribution = mechanism.distribution(3)
    ours = response(3, float(mechanism.epsilon))
    assert [float(distribution.mass[outcome][0]) for outcome in range(8)] == pytest.approx(ours[3].tolist())
    assert ours[3, 3] == pytest.approx(0.4)


def test_fast_differences_are_those_of_the_definition() -> None:
    generator = np.random.default_rng(1)
    distribution = generator.dirichlet(np.ones(5), 8)
    values = differences(distribution)
    for parity in range(1, 8):
        assert values[parity] == pytest.approx(by_hand(distribution, [(parity, 0)]))
    joint = generator.dirichlet(np.ones(7), 64)
    both = joint_differences(joint, 2)
    for first, second in product(range(1, 8), repeat=2):
        assert both[first, second] == pytest.approx(by_hand(joint, [(second, 0), (first << 3, 0)]))
    three = generator.dirichlet(np.ones(3), 64)
    assert joint_differences(three, 3)[1, 2, 3] == pytest.approx(by_hand(three, [(3, 0), (2 << 2, 0), (1 << 4, 0)]))


@pytest.mark.row(63)
def test_a_noisy_histogram_tells_what_enumeration_finds() -> None:
    for bits, people in ((1, 1), (2, 1), (2, 2), (1, 4), (2, 3), (3, 2)):
        distribution = noisy_histogram(bits, people, 1.0)
        assert distribution.sum(axis=1) == pytest.approx(1)
        assert histogram_difference(bits, people, 1.0) == pytest.approx(
            joint_differences(distribution, people)[(1,) * people]
        )
    # clamping loses nothing: compare a wide window of the real mechanism, one cell per value, one person
    wide = Laplace.from_epsilon(sensitivity=2, epsilon=1)
    distributions = [wide.distribution(count, window=(-40, 40)) for count in (0, 1)]
    one = np.array([[float(distributions[count].mass[z][0]) for z in range(-40, 41)] for count in (0, 1)])
    joined = np.einsum("i,j->ij", one[1], one[0]), np.einsum("i,j->ij", one[0], one[1])
    assert np.abs(joined[0] - joined[1]).sum() / 2 == pytest.approx(histogram_difference(1, 1, 1.0), abs=1e-9)


def test_subset_response_is_what_enumeration_finds() -> None:
    for epsilon in (0.3, 1.0):
        sizes = {1, *(round(8 / (1 + exp(epsilon))) + more for more in (-1, 0, 1))}
        best = max(differences(subset_distribution(3, size, epsilon))[1] for size in sizes if size)
        assert subset_difference(3, epsilon) == pytest.approx(best)
    assert subset_difference(12, 1.0) > 10 * response_difference(12, 1.0)


def test_repeated_views_are_two_binomials() -> None:
    for one, people in ((0.3, 1), (0.3, 7), (0.05, 100), (1e-4, 1001), (0.2, 400)):
        k = np.arange(people + 1)
        apart = binom.pmf(k, people, (1 + one) / 2) - binom.pmf(k, people, (1 - one) / 2)
        assert repeated(one, people) == pytest.approx(np.abs(apart).sum() / 2, rel=1e-9)
    # no cancellation where the difference is tiny
    assert repeated(1e-12, 1) == pytest.approx(1e-12)
    distribution = joint_response(response(2, 1.0), 3)
    assert joint_differences(distribution, 3)[1, 2, 3] == pytest.approx(repeated(response_difference(2, 1.0), 3))


@pytest.mark.row(63)
def test_one_private_answer_is_off_by_about_one_over_epsilon() -> None:
    for epsilon in (0.01, 0.1, 1.0):
        noise = Laplace.from_epsilon(sensitivity=1, epsilon=str(epsilon))
        assert query_error(epsilon) == pytest.approx(1 / epsilon, rel=0.2)
        distributions = [noise.distribution(count, window=(-400, 420)) for count in (0, 9)]
        apart = sum(abs(float(distributions[0].mass[z][0] - distributions[1].mass[z][0])) for z in range(-400, 421))
        assert query_difference(9, epsilon) == pytest.approx(apart / 2, abs=1e-6)


def test_deviations_are_the_variance_over_the_number_of_parities() -> None:
    distribution = np.random.default_rng(2).dirichlet(np.ones(6), 16)
    assert bounds.deviations(distribution) == pytest.approx(distribution.var(axis=0) / 15)
    for each in schemes(3, 1, 0.7):
        mean = each.mean(axis=0)
        limit = (sinh(0.35) ** 2) * mean**2 / 7
        assert (bounds.deviations(each) <= limit * (1 + 1e-12)).all()
        # claim 1 as printed has twice the square of e^ε − 1 over 2^d: true, and loose
        assert (bounds.deviations(each) <= 2 * (exp(0.7) - 1) ** 2 * mean**2 / 8).all()


@pytest.mark.row(64)
def test_signs_agree_less_often_than_not_and_not_as_printed() -> None:
    for bits in (2, 3, 5):
        side = 1 << bits
        signs = walsh_hadamard(np.eye(side))[:, 1:]
        products = (signs @ signs.T) / (side - 1)
        apart = products[~np.eye(side, dtype=bool)]
        assert apart == pytest.approx(bounds.sign_product(bits))
        assert (apart < 0).all()
        # the printed value, 1/2^d, is not it
        assert np.abs(apart - 1 / side).min() > 1 / side


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_mean_difference_is_within_the_bound(epsilon: float) -> None:
    for bits in (1, 2, 4):
        distributions = [*schemes(bits, 1, epsilon)[:2], one_parity(bits, epsilon, 1)]
        distributions += [noisy_histogram(bits, 1, epsilon)] if bits < 4 else []
        for distribution in distributions:
            assert differences(distribution)[1:].mean() <= bounds.view_bound(bits, epsilon, 1.0) * (1 + 1e-12)
    # near: two bits at ε = 1
    assert response_difference(2, 1.0) > 0.99 * bounds.view_bound(2, 1.0, 1.0)


def test_a_view_that_is_not_private_breaks_the_bound() -> None:
    """The planted error: each person's value is published."""
    assert differences(np.eye(16))[1:].mean() > bounds.view_bound(4, 1.0, 1.0)


@pytest.mark.row(64)
def test_lemma_2_holds_corrected_and_fails_as_printed() -> None:
    for bits, epsilon, failing in product((3, 6, 8), (0.5, 1.0), (0.3, 0.1, 1e-3, 1e-9)):
        for distribution in (response(bits, epsilon), bitwise(bits, epsilon), one_parity(bits, epsilon, 5)):
            values = differences(distribution)[1:]
            assert (values > bounds.corrected(bits, epsilon, failing)).mean() <= failing
            assert (values > bounds.view_bound(bits, epsilon, failing)).mean() <= failing
    # as printed, with α below one parity's share: one parity has difference tanh(ε/2), although none may
    single = differences(one_parity(8, 1.0, 5))[1:]
    assert single.max() == pytest.approx(tanh(0.5))
    failing = 1 / 10_000
    assert (single > bounds.printed(8, 1.0, failing)).mean() > failing
    # and for all parities at once, by plain randomized response
    assert (differences(response(6, 1.0))[1:] > bounds.printed(6, 1.0, 1e-9)).all()


@pytest.mark.row(64)
def test_goodness_on_one_side_is_not_enough() -> None:
    """Lemma 2 calls z δ-good if p̂ − p ≤ δp. With δ = 0 and 99% of z good, the difference can be .99; not ≤ 2·.01."""
    distribution, estimate = np.array([0.01, *[0.11] * 9]), np.array([1.0, *[0.0] * 9])
    good = estimate - distribution <= 0
    assert distribution[good].sum() == pytest.approx(0.99)
    assert np.abs(distribution - estimate).sum() / 2 == pytest.approx(0.99)
    assert not (np.abs(estimate - distribution)[good] <= 0).any()


@pytest.mark.row(63)
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_two_thirds_of_all_functions_are_within_the_bound(epsilon: float) -> None:
    for bits, people in ((2, 2), (3, 2), (2, 3)):
        for distribution in schemes(bits, people, epsilon):
            values = joint_differences(distribution, people)[(slice(1, None),) * people]
            assert values.mean() <= bounds.published_bound(bits, people, epsilon, 1.0)
            assert (values <= bounds.published_bound(bits, people, epsilon)).mean() >= 2 / 3
            assert (values <= bounds.theorem_3(bits, people, epsilon)).mean() >= 2 / 3


@pytest.mark.row(63)
def test_sharper_than_theorem_3_wherever_that_says_anything() -> None:
    for bits, people in product((8, 16, 24), (1, 10, 100)):
        assert bounds.published_bound(bits, people, 0.5) < bounds.theorem_3(bits, people, 0.5)
    assert bounds.published_bound(16, 2, 0.5) == pytest.approx(6 * sinh(0.25) / sqrt(65535))


@pytest.mark.row(63)
def test_the_table_has_published_views_beside_the_private_answer() -> None:
    by_size = {(row.bits, row.people): row for row in table.rows(epsilon=1)}
    assert set(by_size) == set(product(table.BITS, (1, 100, 10_000)))
    for row in by_size.values():
        assert row.response <= row.bound
        assert row.error == pytest.approx(0.851, abs=1e-3)
    assert by_size[20, 10_000].response < 2e-4
    assert by_size[20, 10_000].asked > 0.999
    assert by_size[6, 1].needed == 665
    assert (by_size[6, 1].histogram or 0) > by_size[6, 1].response
    assert by_size[20, 1].histogram is None
    text = " ".join(table.sentences(epsilon=1))
    assert "665 people" in text
    assert "0.851" in text


def test_plots_have_a_curve_for_each_scheme() -> None:
    for drawn, names in (
        (
            table.over_bits(epsilon=1),
            ("randomized response", "noisy histogram", "bound for any view", "2006, corrected"),
        ),
        (table.over_people(epsilon=1), ("randomized response, 16 bits", "one private answer")),
    ):
        assert drawn.startswith("<svg")
        for name in names:
            assert name in drawn


def test_what_is_too_large_is_refused() -> None:
    with pytest.raises(ParameterError, match="too many"):
        histogram_difference(10, 5, 1.0)
    with pytest.raises(ParameterError):
        table.row(0, 1, "1")
