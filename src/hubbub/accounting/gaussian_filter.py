"""The Gaussian filter: prices as variances of Gaussian noise on one number, which add up along adaptive transcripts.

Write N(v) for the pair of Gaussian distributions whose log-ratio has variance v: N(0, 1) and N(√v, 1). A pair (P, Q) is
below a pair (P*, Q*) if for every ε, also negative, P(S) − e^ε Q(S) is nowhere larger than the maximum for P*, Q*.

Theorem (Gaussian filter). Fix a limit V. Let each query, given the answers before it, be below N(v_i) for a v_i that
may depend on those answers. If queries are admitted only while Σ v_i ≤ V, the transcript is below N(V).
Proof    Let F_r(x) = E_Q[(x·p/q − e^ε)⁺] for the pair N(r). It is convex in x, grows with r, and F_0(x) = (x − e^ε)⁺.
With ratio x so far and r left, the next query is below N(v), v ≤ r, so that E[F_(r−v)(x·ratio)] ≤ F_r(x): a convex
function of the ratio is a mixture of the functions in the definition, and N(v) followed by N(r−v) is N(r). By induction
from the end, a transcript adds at most F_V(1) to P(S) − e^ε Q(S). (Compare Smith and Thakurta, 2022.)
Tested   tests/accounting/test_gaussian_filter.py::test_worst_adaptive_analyst_stays_below_the_gaussian_pair

Theorem (What is left smooths a query). The same holds if the state r becomes an s for which the query followed by N(s)
is below N(r). Let f_i(s) be the least such r. A transcript is admitted by this filter if f_1(f_2(…f_n(0))) ≤ V, so an
upper bound of this number that only grows with further queries may decide; several such bounds share one δ.
Proof    The same induction; f_i grows, so the largest possible s is the best one.

Theorem (Total variation decides). Randomized response of loss ε followed by N(s) is below N(v) exactly if its total
variation is at most that of N(v), 2Φ(√v/2) − 1.
Proof    Both pairs are symmetric: the law of the log-ratio l under P is that of −l under Q. For such a pair let ν be
e^(−l/2) times the law under P, which is even. Then e^(−t/2)(max P(S) − e^t Q(S)) = ∫(e^((l−t)/2) − e^((t−l)/2))⁺ ν(dl),
and ∫cosh(l/2) ν(dl) = 1, so two pairs differ by ∫e^(−|t−u|/2) m(du), m the difference of their ν. For t, u ≥ 0 the even
part of this kernel, divided by cosh(u/2), is constant for u ≤ t and has the derivative −cosh(t/2)/cosh²(u/2) beyond.
With M(u) = ∫₀ᵘ cosh(x/2) m(dx) the difference is therefore a constant times cosh(t/2)·∫_t^∞ M(u)/cosh²(u/2) du. Let m
be the ν of response and N(s) minus that of N(v), so that the difference is what N(v) has more. For s > 0 the ratio of
the two densities on u ≥ 0 is a constant times cosh(uε/s)·e^(−κu²), which may rise first and then falls. So M, which is
0 at 0 and at ∞, changes its sign at most once, upwards, and its integral from t on is nowhere negative if it is not so
at t = 0: the case of total variation. s = 0 is the limit.
Tested   tests/accounting/test_gaussian_filter.py::test_response_smoothed_by_gaussian_noise_is_below_at_every_threshold

Theorem (Prices of pure losses). f(s) ≤ s + ε² + ε⁴/(6s) for a pure loss ε and s > 0; and f(s) ≤ s + (π/2)ε².
Proof    A pure loss is a post-processing of randomized response (Kairouz, Oh and Viswanath, 2015; interactively: Lyu,
2022). With v = s + ε² + ε⁴/(6s), let G(s) be the total variation of N(v) minus that of response and N(s). It tends to 0
for large s, and G′ ≤ 0: the derivatives are v′e^(−v/8)/√(8πv) and e^(−s/8−ε²/2s)/(√(8πs)·cosh(ε/2)), cosh(ε/2) ≤
e^(ε²/8), and with y = ε²/s it is enough that 1 − y²/6 ≤ √(1+y+y²/6)·e^(−y/2). That is an equality at y = 0, and for
y² < 6 the logarithm of the ratio of the sides is monotone: (2y/3)(1+y+y²/6) ≥ (2y/3+y²/6)(1−y²/6). So G ≥ 0.
The second bound: response is below N(v) if Φ(√v/2) ≥ σ(ε), the logistic function. g = Φ⁻¹∘σ has g′ ≤ √(π/8), because
4Φ(z)Φ(−z) ≤ e^(−z²/2): two normal numbers lie in a square of side 2z at least as often as in the disc inside it.
Tested   tests/accounting/test_gaussian_filter.py::test_price_of_a_pure_loss_is_above_its_exact_variance

Theorem (A list of small losses). Queries with pure losses ε_i ≤ m, mixed with others of prices v_j, have
f_1(f_2(…)) ≤ Σ v_j + S + m²(0.82726 + ln(1/2 + S/m²)/6) with S = Σ ε_i².
Proof    From the last query backwards, let U begin at m²/2 and grow by v_j, or by ε_i² + ε_i⁴/(6U). U is an upper bound
throughout. In units of m², ε_i⁴/(6U) ≤ h/(6x) with h = ε_i² ≤ 1 and x = 1/2 + the later ε². The digamma function ψ is
concave and ψ(x+1) − ψ(x) = 1/x, so h/x ≤ ψ(x+h) − ψ(x): the sum of all h/x is at most ψ(1/2+S) − ψ(1/2). Finally
ψ(x) ≤ ln x, and −ψ(1/2) = 2·ln 2 + 0.57722 < 1.96352 (Euler's constant); 1/2 + 1.96352/6 < 0.82726.
Tested   tests/accounting/test_gaussian_filter.py::test_lists_of_small_losses_are_above_the_exact_recursion

Theorem (Bounded range). A log-ratio within an interval of length ε is below N(πε²/8).
Proof    The worst pairs have two answers, of probabilities a and b whose logits differ by ε (see `curves`). Such a pair
is below N(v) exactly if √v ≥ Φ⁻¹(a) − Φ⁻¹(b), which is at most ε√(π/8) by the bound on g′.
Tested   tests/accounting/test_gaussian_filter.py::test_price_of_a_bounded_range_is_above_its_exact_variance

Theorem (Discrete Gaussian vectors). Discrete Gaussian noise of variance parameter σ² on integers that move by d, with
|d|² ≤ D², is below N(D²/(σ²−c)) but for a probability of D²·5e^(−2π²c(2−c/σ²)); c ≥ 1 is free, σ² > c.
Proof    Round x ~ N(d, σ²−c) to an integer z with probability e^(−(z−x)²/2c)/ϑ(x), ϑ the sum over all z. This is a
post-processing of N(|d|²/(σ²−c)), and has the probability of the discrete Gaussian times E[A/ϑ(x)] for x ~ N(y, τ²),
τ² = c(1−c/σ²), A a constant, y a function of z − d. By Poisson summation ϑ is a constant times 1 + w(x) with
w = 2Σq^(k²)cos 2πkx, q = e^(−2π²c). In 1/(1+w) = Σ(−w)^j every cosine of a frequency k ≥ 1 is multiplied by
e^(−2π²τ²k²) in the mean, so that E[A/ϑ] varies by at most r = 2.1·e^(−2π²(c+τ²)) relatively, both ways, and the
discrete Gaussian has at least the share (1−r)/(1+r) ≥ 1 − 2.1r of the rounded distribution, under both neighbors. At
most D² coordinates move, by integers.
Tested   tests/accounting/test_gaussian_filter.py::test_discrete_gaussian_noise_is_below_its_price
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from hubbub.core.gaussian_profile import least_variance
from hubbub.core.interval import Interval, exp
from hubbub.core.reals import ceil_to

#: Prices are integers: variances in units of 10⁻²⁴, then the failure probability in units of 10⁻³⁶.
STEPS = 10**24
FAILURE_STEPS = 10**36

#: The largest losses m of the classes of small losses, in units of 10⁻⁴.
_TOPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
_SQUARES = tuple(STEPS * top * top // 10**8 for top in _TOPS)
_LAST = len(_TOPS) + 1

#: The price of an event: of Gaussian noise and large losses, the ε² of each class, and the failure probability.
Price = tuple[int, ...]

NOTHING: Price = (0,) * (_LAST + 1)
#: The price of an event that no Gaussian pair is known to be above.
NEVER: Price = (0,) * _LAST + (FAILURE_STEPS,)

#: π/2, rounded up.
_HALF_PI = Fraction(11, 7)
#: In units of 10⁻¹⁰: 0.82726; ln 2 rounded up and down, and 1 + ln ln 2 rounded down.
_TEN, _START, _LN2, _LN2_BELOW, _TANGENT = 10**10, 8272600000, 6931471806, 6931471805, 6334870793
#: The c of discrete Gaussian noise, from a variance on; below the first one there is no price.
_ROUNDING = ((10_000, 10), (100, 2), (10, 1))


def _units(value: Fraction, steps: int = STEPS) -> int:
    return -(-value.numerator * steps // value.denominator)


def pure(epsilon: Fraction) -> Price:
    """Give the price of a pure loss: ε² in its class, or (π/2)ε² if it is above 1."""
    place, units = _pure(epsilon.numerator, epsilon.denominator)
    return (*NOTHING[:place], units, *NOTHING[place + 1 :])


def _pure(numerator: int, denominator: int) -> tuple[int, int]:
    """Give the place of a pure loss in a price, and its units there; of integers, because Fractions are slow."""
    square, of = numerator * numerator * STEPS, denominator * denominator
    for place, top in enumerate(_TOPS, 1):
        if numerator * 10**4 <= top * denominator:
            return place, -(-square // of)
    return 0, -(-square * _HALF_PI.numerator // (of * _HALF_PI.denominator))


def bounded_range(epsilon: Fraction) -> Price:
    """Give the price of a log-ratio within an interval of length ε: (π/8)ε²."""
    return (_units(_HALF_PI * epsilon * epsilon / 4), *NOTHING[1:])


@lru_cache(maxsize=4096)
def noise(sensitivity_squared: Fraction, variance: Fraction) -> Price:
    """Give the price of discrete Gaussian noise on an integer vector; none is known for variances below 10."""
    rounding = next((rounding for least, rounding in _ROUNDING if variance >= least), None)
    if rounding is None:
        return NEVER
    exponent = Fraction(1973, 100) * rounding * (2 - rounding / variance)  # 2π² > 19.73
    failure = 5 * sensitivity_squared * exp(Interval.of(-exponent)).above(200)
    return (
        _units(sensitivity_squared / (variance - rounding)),
        *NOTHING[1:_LAST],
        min(FAILURE_STEPS, _units(failure, FAILURE_STEPS)),
    )


def failure(total: Price) -> int:
    """Give the failure probability of a total, in units of 10⁻³⁶."""
    return total[_LAST]


def variance(total: Price) -> int:
    """Give a v, in units of 10⁻²⁴, such that the charges of this total pass the Gaussian filter of limit v.

    Each class m of small losses gives one bound: it and those below it at their ε², all others at (π/2)ε².

    >>> round(variance(tuple(100 * part for part in pure(Fraction(1, 10)))) / STEPS, 3)
    1.016
    """
    fixed = total[0]
    large, small = sum(total[1:_LAST]), 0
    best = fixed - (-_HALF_PI.numerator * large // _HALF_PI.denominator)
    for square, part in zip(_SQUARES, total[1:_LAST], strict=True):
        if part:
            small += part
            large -= part
            least = fixed - (-_HALF_PI.numerator * large // _HALF_PI.denominator) + small + _excess(small, square)
            best = min(best, least)
    return best


def _excess(small: int, square: int) -> int:
    """Bound m²(0.82726 + ln(1/2 + S/m²)/6) from above, m² = `square`.

    ln x ≤ n·ln 2 + (x/2ⁿ)·ln 2 − (1 + ln ln 2) for each n: a tangent of the logarithm. With 2ⁿ ≤ x < 2ⁿ⁺¹ it is
    continuous; here x = 1 + 2S/m², and ln(1/2 + S/m²) = ln x − ln 2.
    """
    twice = square + 2 * small
    n = (twice // square).bit_length() - 1
    constant = 6 * _START + n * _LN2 - _TANGENT - _LN2_BELOW
    return -(-((constant * square << n) + _LN2 * twice) // (6 * _TEN << n))


@lru_cache(maxsize=4096)
def limit(epsilon: Fraction, delta: Fraction) -> int:
    """Give the largest v, rounded down, such that N(v) is (ε, δ)-DP, in units of 10⁻²⁴.

    >>> round(limit(Fraction(1), Fraction(1, 10**6)) / STEPS, 4)
    0.056
    """
    return math.floor(STEPS / least_variance(epsilon, delta))


# ── for people ────────────────────────────────────────────────────────────────────────────────────────────────────────

_ROUNDS = 100
#: How often a guess of the largest pure loss is corrected.
_GUESSES = 4
_FAR = 25.0


def _mills(x: float) -> float:
    """Give (1 − Φ(x))/φ(x)."""
    if x < _FAR:
        return math.sqrt(math.pi / 2) * math.exp(x * x / 2) * math.erfc(x / math.sqrt(2))
    return (1 - 1 / x**2 + 3 / x**4 - 15 / x**6) / x


@lru_cache(maxsize=4096)
def shown_epsilon(value: int, delta: Fraction) -> Fraction:
    """Give an ε at which N(v) is (ε, δ)-DP, in doubles, a little above the least: to be shown, never to decide."""
    root, target = math.sqrt(value / STEPS), math.log(delta.numerator) - math.log(delta.denominator)
    if not root:
        return Fraction(0)

    def above(epsilon: float) -> bool:
        far, near = epsilon / root - root / 2, epsilon / root + root / 2
        if far <= 0:
            inside = math.erfc(far / math.sqrt(2)) / 2 - math.exp(-far * far / 2) * _mills(near) / math.sqrt(
                2 * math.pi
            )
            return inside > math.exp(target)
        gap = _mills(far) - _mills(near)
        return gap > 0 and -far * far / 2 - math.log(2 * math.pi) / 2 + math.log(gap) > target

    low, high = 0.0, value / STEPS + root * (math.sqrt(-2 * target) + 1) + 1
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        if middle in (low, high):
            break  # there is no double between them
        low, high = (middle, high) if above(middle) else (low, middle)
    return ceil_to(Fraction(high) * (1 + Fraction(1, 10**9)), 12)


def largest_pure(room: Sequence[int] | Price, most: int, *, places: int) -> int:
    """Give the largest pure loss, in units of 10^−places, that fits after the total `room` within the limit `most`.

    A price grows with its loss, and the variance of a total with each of its parts. So the search by doubles, which
    only guesses where the end is, changes nothing about the result: integers decide on both sides of it.
    """
    scale, before = 10**places, list(room)

    def after(loss: int) -> int:
        place, units = _pure(loss, scale)
        total = before.copy()
        total[place] += units
        return variance(tuple(total))

    free = most - variance(tuple(before))
    low, high = 0, (math.isqrt(max(0, most) * scale * scale // STEPS) + 1) * 2
    guess, step = math.isqrt(max(0, free) * scale * scale // STEPS), 1
    for _ in range(_GUESSES):
        used = after(guess) - most + free
        if guess and used > 0:  # the variance grows about as the square of the loss
            guess = int(guess * math.sqrt(max(0, free) / used))
    while high - low > 1:
        middle = min(max(guess, low + 1), high - 1) if step < high - low else (low + high) // 2
        if after(middle) <= most:
            low, guess = middle, middle + step
        else:
            high, guess = middle, middle - step
        step *= 64
    return low
