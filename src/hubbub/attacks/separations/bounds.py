"""Bounds for published views: as printed in 2006, corrected, and sharpened."""

from math import cbrt, expm1, sinh, sqrt

import numpy as np

from hubbub.attacks.separations.parity import Floats, transformed


def sign_product(bits: int) -> float:
    """Return the mean of (−1)^{r·x}·(−1)^{r·y} over all r ≠ 0, for any x ≠ y: −1/(2^d − 1), not the printed 1/2^d."""
    return -1 / (2.0**bits - 1)


def deviations(distribution: Floats) -> Floats:
    """Return for each z the mean over all parities of (Pr[Z(D_r) = z] − Pr[Z(D) = z])², from distribution[x, z]."""
    waves = transformed(distribution.T)[:, 1:] / len(distribution)
    return np.asarray((waves**2).mean(axis=1))


def view_bound(bits: int, epsilon: float, failing: float) -> float:
    """Bound the difference of an ε-private view of one person for all parities but a share `failing` of them.

    Theorem (Parities hide in a private view). Let Pr[Z(x) = z] be within e^ε for any two of the 2^d values x. Then the
    mean over all parities r of SD(Z(D_r), Z(rest)) is at most sinh(ε/2)/√(2^d − 1).
    Proof    Let f(x) = Pr[Z(x) = z], and μ its mean. Pr[Z(D_r) = z] − μ = 2^{−d}·Σ f(x)(−1)^{r·x}, whose squares sum up
             over r ≠ 0 to the variance of f (Parseval). With f within [m, M], M ≤ e^ε·m, the variance is at most
             (M − μ)(μ − m) ≤ μ²·(M − m)²/(4mM) ≤ μ²·sinh²(ε/2). So the mean over r of the absolute value is at most
             μ·sinh(ε/2)/√(2^d − 1); the difference between the halves is the sum of these over z, and Σμ = 1.
    Assumes  pure ε. By Markov's inequality the bound divided by α holds for all but a share α of the parities.
             This is claim 1 and lemma 2 of Dwork, McSherry, Nissim and Smith (2006) without the cube root: see
             `corrected`.
    Tested   tests/attacks/test_separations.py::test_the_mean_difference_is_within_the_bound
             tests/attacks/test_separations.py::test_deviations_are_the_variance_over_the_number_of_parities
    """
    return sinh(epsilon / 2) / sqrt(2.0**bits - 1) / failing


def corrected(bits: int, epsilon: float, failing: float) -> float:
    """Return lemma 2 of 2006 with its δ set right: 2·4·(2ε̃²/(α·2^d))^{1/3}, between the halves (twice that to Z(D))."""
    return 8 * cbrt(2 * expm1(epsilon) ** 2 / (failing * 2.0**bits))


def printed(bits: int, epsilon: float, failing: float) -> float:
    """Return lemma 2 as printed: δ = (2αε̃²/2^d)^{1/3}, which falls where it must rise as fewer parities may fail.

    It is false: a view that tells one parity and no other keeps its difference at that one, however small α is.
    """
    return 8 * cbrt(2 * failing * expm1(epsilon) ** 2 / 2.0**bits)


def published_bound(bits: int, people: int, epsilon: float, failing: float = 1 / 3) -> float:
    """Bound the difference of any ε-private published view of n people, for all but a share of the parities of each.

    Theorem (Published views need many people). Let San be ε-private (one person replaced) with any published output,
    and each person i have a parity rᵢ, drawn at random. The mean over all of them of the difference between "nobody
    satisfies his parity" and "everybody does" is at most n·sinh(ε/2)/√(2^d − 1). So for 2/3 of the functions
    f(x) = Σ rᵢ·xᵢ it is at most 3n·sinh(ε/2)/√(2^d − 1): telling them apart takes n ≈ 2^{d/2}/ε people, where one
    private answer has an error of 1/ε.
    Proof    Go from uniform people to D_r₁, D_r₂, … one at a time. With the first i fixed, the view of person i + 1 is
             ε-private, and rᵢ₊₁ independent of it: a step costs half of "Parities hide in a private view" on average.
             Both ends are n such steps from uniform people; add up, and use Markov's inequality.
    Assumes  as in Dwork, McSherry, Nissim and Smith (2006), theorem 3, whose bound n^{4/3}·ε^{2/3}·2^{−d/3} this beats.
    Tested   tests/attacks/test_separations.py::test_two_thirds_of_all_functions_are_within_the_bound
    """
    return people * view_bound(bits, epsilon, failing)


def theorem_3(bits: int, people: int, epsilon: float) -> float:
    """Return theorem 3 of 2006 with its constants written out: 2nσ, σ from `corrected` at a failing share of 1/(6n)."""
    return people * corrected(bits, epsilon, 1 / (6 * people))


def theorem_3_printed(bits: int, people: int, epsilon: float) -> float:
    """Return the same with the printed δ."""
    return people * printed(bits, epsilon, 1 / (6 * people))


def proposition_2(bits: int, people: int, epsilon: float) -> float:
    """Return proposition 2 of 2006 (one parity for all, randomized response) with its constants: n steps at α = 1/3."""
    return people * corrected(bits, epsilon, 1 / 3)
