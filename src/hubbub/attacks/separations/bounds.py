"""Bounds for published views: as printed in Dwork et al. (2006), corrected, and sharpened."""

from math import cbrt, expm1, sinh, sqrt

import numpy as np

from hubbub.attacks.separations.parity import Floats, walsh_hadamard


def sign_product(bits: int) -> float:
    """Return the mean of (−1)^{r·x}·(−1)^{r·y} over all r ≠ 0, for any x ≠ y: −1/(2^d − 1), not the printed 1/2^d."""
    return -1 / (2.0**bits - 1)


def deviations(distribution: Floats) -> Floats:
    """Return for each z the mean over all parities of (Pr[Z(D_r) = z] − Pr[Z(D) = z])², from distribution[x, z]."""
    waves = walsh_hadamard(distribution.T)[:, 1:] / len(distribution)
    return np.asarray((waves**2).mean(axis=1))


def view_bound(bits: int, epsilon: float, failing: float) -> float:
    """Bound the difference of an ε-private view of one person, for all but a share `failing` of the parities.

    Theorem (Parities hide in a private view). Let Pr[Z(x) = z] differ by at most a factor e^ε between any two of the
    2^d values x. Then the mean over all parities r of SD(Z(D_r), Z(rest)) is at most sinh(ε/2)/√(2^d − 1).
    Proof    Let f(x) = Pr[Z(x) = z] with mean μ. Then Pr[Z(D_r) = z] − μ = 2^{−d}·Σ f(x)(−1)^{r·x}, and the sum of
             its squares over r ≠ 0 is the variance of f (Parseval). If f lies in [m, M] with M ≤ e^ε·m, the variance is
             at most (M − μ)(μ − m) ≤ μ²·(M − m)²/(4mM) ≤ μ²·sinh²(ε/2). Hence the mean over r of the absolute value
             is at most μ·sinh(ε/2)/√(2^d − 1). The difference between the halves is the sum of these over z, and
             Σμ = 1.
    Assumes  pure ε-DP. By Markov's inequality, the bound divided by α holds for all but a share α of the parities. It
             improves claim 1 and lemma 2 of Dwork, McSherry, Nissim and Smith (2006), which have a cube root: see
             `corrected`.
    Tested   tests/attacks/test_separations.py::test_the_mean_difference_is_within_the_bound
             tests/attacks/test_separations.py::test_deviations_are_the_variance_over_the_number_of_parities
    """
    return sinh(epsilon / 2) / sqrt(2.0**bits - 1) / failing


def corrected(bits: int, epsilon: float, failing: float) -> float:
    """Return lemma 2 of 2006 with its δ corrected: 2·4·(2ε̃²/(α·2^d))^{1/3} between the halves, twice that to Z(D)."""
    return 8 * cbrt(2 * expm1(epsilon) ** 2 / (failing * 2.0**bits))


def printed(bits: int, epsilon: float, failing: float) -> float:
    """Return lemma 2 as printed: δ = (2αε̃²/2^d)^{1/3}, which decreases as α decreases, although it must increase.

    It is false: a view that reveals exactly one parity keeps its difference for that parity, however small α is.
    """
    return 8 * cbrt(2 * failing * expm1(epsilon) ** 2 / 2.0**bits)


def published_bound(bits: int, people: int, epsilon: float, failing: float = 1 / 3) -> float:
    """Bound the difference of any ε-private published view of n people, for all but a share `failing` of the functions.

    Theorem (Published views need many people). Let San be ε-private (replacing one person) with any published output,
    and let each person i have a random parity rᵢ. The mean over all parities of the difference between "no one
    satisfies their parity" and "everyone does" is at most n·sinh(ε/2)/√(2^d − 1). Hence for 2/3 of the functions
    f(x) = Σ rᵢ·xᵢ it is at most 3n·sinh(ε/2)/√(2^d − 1): distinguishing the two requires n ≈ 2^{d/2}/ε people, whereas
    one private answer has an error of 1/ε.
    Proof    Replace uniform people by D_r₁, D_r₂, … one at a time. With the first i fixed, the view of person i + 1 is
             ε-private and independent of rᵢ₊₁, so each step costs on average half of the bound in "Parities hide in
             a private view". Both cases are n such steps from uniform people. Add up and use Markov's inequality.
    Assumes  the setting of theorem 3 of Dwork, McSherry, Nissim and Smith (2006), whose bound n^{4/3}·ε^{2/3}·2^{−d/3}
             this improves.
    Tested   tests/attacks/test_separations.py::test_two_thirds_of_all_functions_are_within_the_bound
    """
    return people * view_bound(bits, epsilon, failing)


def theorem_3(bits: int, people: int, epsilon: float) -> float:
    """Return theorem 3 of 2006 with explicit constants: 2nσ, with σ from `corrected` at a failing share of 1/(6n)."""
    return people * corrected(bits, epsilon, 1 / (6 * people))


def theorem_3_printed(bits: int, people: int, epsilon: float) -> float:
    """Return theorem 3 with the printed δ."""
    return people * printed(bits, epsilon, 1 / (6 * people))
