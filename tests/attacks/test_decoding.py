"""Decoders of bits from noisy sums."""

import sys
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from hubbub.attacks.decoding import (
    DECODERS,
    Dense,
    few,
    gaussian,
    least_absolute,
    least_squares,
    least_worst,
    packed,
    rounded,
    subsets,
)
from hubbub.attacks.reconstruction import wild
from hubbub.errors import AttackError


def secret_bits(people: int, seed: int = 7) -> tuple[np.random.Generator, Any]:
    generator = np.random.default_rng(seed)
    return generator, generator.integers(0, 2, people).astype(np.float64)


@pytest.mark.row(67)
@pytest.mark.parametrize(("noise", "share"), [(4, 0.992), (8, 0.91), (16, 0.75)])
def test_least_squares_has_so_many_bits_right_at_this_noise(noise: int, share: float) -> None:
    """Ten databases of 256 bits, 8n queries. False alarm below 1e-9: ±0.03 is over 6 deviations of 2,560 bits."""
    right = []
    for seed in range(10):
        generator, secret = secret_bits(256, seed)
        queries = subsets(256, 8 * 256, generator)
        answers = queries.ask(secret) + generator.normal(0, noise, 8 * 256)
        right.append(float((rounded(least_squares(queries, answers)) == secret).mean()))
    assert np.mean(right) == pytest.approx(share, abs=0.03 if noise > 4 else 0.008)


def test_least_squares_without_the_questions_is_caught() -> None:
    """The planted error: answers decoded with the wrong queries give bits no better than chance."""
    generator, secret = secret_bits(256)
    answers = subsets(256, 8 * 256, generator).ask(secret)
    guess = rounded(least_squares(subsets(256, 8 * 256, generator), answers))
    assert abs((guess == secret).mean() - 0.5) < 0.2


def test_conjugate_gradients_find_what_elimination_finds() -> None:
    generator, secret = secret_bits(60)
    queries = subsets(60, 480, generator)
    answers = queries.ask(secret) + generator.normal(0, 5, 480)
    exact = np.linalg.lstsq(queries.matrix, answers)[0]
    assert least_squares(queries, answers, tolerance=1e-9) == pytest.approx(exact, abs=1e-6)


@pytest.mark.row(67)
@pytest.mark.parametrize("kind", [subsets, gaussian])
def test_least_absolute_decoding_survives_a_fifth_of_wild_answers(kind: Any) -> None:
    generator, secret = secret_bits(128)
    queries = kind(128, 8 * 128, generator)
    answers = wild(queries.ask(secret) + generator.normal(0, 0.5, 8 * 128), 0.2, generator)
    assert (rounded(least_absolute(queries, answers)) == secret).all()
    # and it is needed: least squares does not survive them
    assert (rounded(least_squares(queries, answers)) == secret).mean() < 0.95


def test_least_absolute_is_the_optimum_of_its_linear_program() -> None:
    generator, secret = secret_bits(24)
    queries = subsets(24, 192, generator)
    answers = wild(queries.ask(secret) + generator.normal(0, 2, 192), 0.2, generator)
    estimate = least_absolute(queries, answers, rounds=4000)
    rows, people = queries.matrix.shape
    eye = np.eye(rows)
    program = linprog(
        np.r_[np.zeros(people), np.ones(rows)],
        A_ub=np.block([[queries.matrix, -eye], [-queries.matrix, -eye]]),
        b_ub=np.r_[answers, -answers],
        bounds=[(0, 1)] * people + [(0, None)] * rows,
    )
    assert np.abs(queries.ask(estimate) - answers).sum() == pytest.approx(program.fun, rel=1e-3)


@pytest.mark.row(67)
@pytest.mark.parametrize("kind", [subsets, gaussian])
def test_the_linear_program_finds_a_point_within_the_noise(kind: Any) -> None:
    generator, secret = secret_bits(48)
    queries = kind(48, 8 * 48, generator)
    answers = queries.ask(secret) + generator.uniform(-2, 2, 8 * 48)
    estimate = least_worst(queries, answers)
    assert np.abs(queries.ask(estimate) - answers).max() <= 2 + 1e-6
    assert (rounded(estimate) == secret).mean() >= 0.95


def test_packed_and_short_questions_say_what_the_matrix_says() -> None:
    generator, secret = secret_bits(1003)
    big = packed(1003, 2050, generator)
    matrix = np.unpackbits(big.bits, axis=1, count=1003).astype(np.float64)
    short = few(1003, 500, 20, generator)
    listed = np.zeros((500, 1003))
    np.add.at(listed, (np.arange(500)[:, None], short.members), 1)
    for queries, plain in ((big, Dense(matrix)), (short, Dense(listed))):
        values = generator.normal(size=len(plain.matrix))
        assert queries.ask(secret) == pytest.approx(plain.ask(secret), rel=1e-4)
        assert queries.back(values) == pytest.approx(plain.back(values), rel=1e-3, abs=1e-2)
        assert queries.gram_product(secret) == pytest.approx(plain.gram_product(secret), rel=1e-4)


@pytest.mark.parametrize("name", sorted(DECODERS))
def test_every_decoder_finds_all_bits_from_exact_answers(name: str) -> None:
    generator, secret = secret_bits(32)
    queries = subsets(32, 256, generator)
    assert (rounded(DECODERS[name](queries, queries.ask(secret))) == secret).all()


@pytest.mark.row(67)
def test_noise_well_below_the_root_of_n_hides_little_from_n_log_squared_n_questions() -> None:
    """Seeded: 128 people, 49 queries each, noise of half and of twice √n."""
    generator, secret = secret_bits(128)
    queries = subsets(128, 128 * 49, generator)
    right = [
        float(
            (
                rounded(least_squares(queries, queries.ask(secret) + generator.normal(0, noise, 128 * 49))) == secret
            ).mean()
        )
        for noise in (0.5 * 128**0.5, 2 * 128**0.5)
    ]
    assert right[0] > 0.995
    assert 0.6 < right[1] < 0.95


def test_linear_programming_without_scipy_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    generator, secret = secret_bits(8)
    queries = subsets(8, 32, generator)
    with pytest.raises(AttackError, match="scipy") as refusal:
        least_worst(queries, queries.ask(secret))
    assert "hubbub[attack]" in refusal.value.remedy
