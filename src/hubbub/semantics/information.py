"""How many bits the answers tell about one person, to someone who knows everybody else's data.

Few bits do not imply privacy: publishing one random person's row tells little about each (Kasiviswanathan and Smith
2014, remark 1). Differential privacy does imply few bits, and these are the exact maxima.
"""

from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise

from hubbub.core.interval import Interval, exp, log
from hubbub.core.odds import LARGE
from hubbub.semantics.odds import guess

_ZERO, _ONE = Fraction(0), Fraction(1)
_LN2 = log(Interval.of(2))


def bits_about_a_fact(profile: Iterable[tuple[Fraction, Fraction]]) -> Fraction:
    """Bound the mutual information of the answers and a yes-or-no fact about one person, over all priors.

    profile   (ε, δ) pairs that all hold at once, in both directions

    Theorem (Bits about a fact). The mutual information is at most log₂e · ∫ δ(γ)/(γ(γ + 1)) dγ over γ from 1 to ∞,
    where δ(γ) is convex and holds at ε = ln γ. For one pair (ε, δ) it is δ + (1 − δ)(1 − h(1/(1 + e^ε))) bits, with the
    binary entropy h; without δ, randomized response attains it.
    Proof    For the prior ½ it is the Jensen–Shannon divergence, the f-divergence with f″(u) = 1/(2u(u + 1)), which is
    ∫ (E_γ(P‖Q) + E_γ(Q‖P))/(2γ(γ + 1)) dγ, with E_γ ≤ δ(γ). A symmetric pair with E_γ = δ(γ) dominates P and Q
    (Blackwell), so P and Q tell no more for any prior, and a symmetric pair tells most for the prior ½. Between the
    given pairs the chord is above the convex δ(γ); at γ = 1 `odds.guess` gives 2·guess − 1.
    Assumes  as `core.odds.exceedance`: everybody else's data is known or independent of the fact.
    Tested   tests/semantics/test_information.py::test_randomized_response_attains_the_bits_over_all_priors
             tests/semantics/test_information.py::test_no_random_pair_tells_more_for_any_prior
             tests/semantics/test_information.py::test_gaussian_noise_tells_what_quadrature_gives

    >>> round(float(bits_about_a_fact([(Fraction(1), Fraction(0))])), 4)
    0.1601
    """
    pairs = [(min(epsilon, Fraction(LARGE)), delta if epsilon <= LARGE else _ONE) for epsilon, delta in profile]
    least = min(2 * guess(epsilon=epsilon, delta=delta) - 1 for epsilon, delta in pairs)
    nodes = [(Interval.of(1), least)]
    for epsilon in sorted({epsilon for epsilon, _ in pairs if epsilon}):
        nodes.append((exp(epsilon), min(delta for at, delta in pairs if at <= epsilon)))
    last, rest = nodes[-1]
    nats = rest * log(1 + 1 / last)
    for (start, high), (end, low) in pairwise(nodes):
        slope = (low - high) / (end - start)
        nats = nats + (high - slope * start) * log(end * (1 + start) / (start * (1 + end)))
        nats = nats + slope * log((1 + end) / (1 + start))
    return max(_ZERO, min(_ONE, (nats / _LN2).above()))


def bits_about_a_person(epsilon: Fraction) -> Fraction:
    """Bound the mutual information of the answers and everything about one person under ε-privacy, over all priors.

    Theorem (Bits about a person). It is at most log₂e · (ln((e^ε − 1)/ε) + ε/(e^ε − 1) − 1), about ε²/8 nats, and no
    less will do: responding with a random set of values that holds the true one with odds e^ε comes as near as one
    likes. At ε = 1, randomized response among three values is within 0.1%. (ε·log₂e is the bound that follows from the
    definition alone.)
    Proof    It is the mean over answers of the divergence of the posterior from the prior. There the ratio of the two
    lies between c and ce^ε. For a set of prior weight w at the upper end it is at most ε·we^ε/Z − ln Z with Z = 1 +
    w(e^ε − 1), because the divergence is convex in the ratio; the maximum is at Z = ε·e^ε/(e^ε − 1).
    Assumes  δ = 0: with probability δ an answer may be a person's whole row, of any number of bits.
    Tested   tests/semantics/test_information.py::test_a_random_set_of_values_approaches_the_bits_about_a_person
             tests/semantics/test_information.py::test_no_random_channel_tells_more_about_a_person

    >>> round(float(bits_about_a_person(Fraction(1))), 4)
    0.1779
    """
    rise = exp(epsilon) - 1
    return max(_ZERO, ((log(rise / epsilon) + epsilon / rise - 1) / _LN2).above())
