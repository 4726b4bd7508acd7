"""The screen about noise calibrated to local sensitivity, and its leak.

Tested in tests/semantics/screens/test_readings.py.
"""

from fractions import Fraction
from functools import lru_cache

from hubbub.core.finite import exact_distribution
from hubbub.core.numbers import brief
from hubbub.mechanisms.enumeration import worst_ratio
from hubbub.semantics.local_sensitivity import LocalNoise, gaussian_leak, local_sensitivity, median
from hubbub.semantics.screens import base
from hubbub.semantics.screens.base import Reading, Screen, ceiling, decimal
from hubbub.semantics.screens.figures import Curves

Rows = tuple[int, ...]


def _noise(bound: int, gap: int, epsilon: Fraction) -> LocalNoise:
    return LocalNoise(function=median, domain=range(gap + 1), bound=bound, epsilon=epsilon)


@lru_cache(maxsize=64)
def leak(*, epsilon: Fraction, gap: int, exceptions: Fraction) -> Reading:
    """Show what noise for a small local sensitivity loses on data with a large one."""
    domain = range(gap + 1)
    calm, calmer = (0, 0, 0, 0, 1), (0, 0, 0, 0, 0)
    edge, over = (0, 0, 0, gap, gap), (0, 0, gap, gap, gap)
    locals_ = [local_sensitivity(median, rows, domain) for rows in (calm, edge)]
    small, large = _noise(1, gap, epsilon), _noise(gap, gap, epsilon)
    losses = [noise.leak(*pair) for noise in (small, large) for pair in ((calm, calmer), (edge, over))]
    # noise for the local sensitivity of the data at hand: none beside the split data
    beside = (0, 0, 0, 0, gap)
    own = worst_ratio(exact_distribution({median(beside): Fraction(1)}), large.distribution(edge))
    prior: dict[Rows, Fraction] = {edge: exceptions, calm: (1 - exceptions) / 2, calmer: (1 - exceptions) / 2}
    level, chance = small.guarantee(prior)
    spread = gaussian_leak(epsilon=epsilon, delta=Fraction(1, 10**6), bound=1, moved=gap)
    promise = (
        f"someone who considers such data to have probability δ₁ = {brief(exceptions)} changes no belief by more than"
        f" {ceiling(level)}, except with probability {ceiling(chance)}"
        if level < 1 and chance < 1
        else f"δ₁ = {brief(exceptions)} is too large for any bound"
    )
    return Reading(
        (
            f"The median of five values between 0 and {gap} is published. On data such as {_list(calm)}, one person"
            f" moves it by {locals_[0]}: its local sensitivity. On {_list(edge)} one person moves it by {locals_[1]}.",
            f"Noise for a sensitivity of 1 at ε = {brief(epsilon)} loses {decimal(losses[0])} on the first data. On the"
            f" second, it loses {decimal(losses[1])}: {gap} times what was meant.",
            f"Noise for the worst case, {gap}, keeps ε = {decimal(losses[3])} everywhere, and is {gap} times as large.",
            f"For most data there is a weaker promise (local semantic privacy): {promise}. It is none to those whose"
            " data is the exception.",
            f"Gaussian noise does no better: calibrated to ({brief(epsilon)}, 1e-6) for a sensitivity of 1, its δ on"
            f" split data is {decimal(spread)}.",
            f"Noise that follows the local sensitivity of the very data is worse: on {_list(beside)} it would be"
            f" {local_sensitivity(median, beside, domain)}, so no noise, and on the split data beside it, {gap}. Its"
            f" size tells them apart: ε = {decimal(own)}. This mechanism cannot be charged. Smooth sensitivity and"
            " propose-test-release do it right: `CALL median(…)`.",
        ),
        ("noise for", "nearly equal data", "split data"),
        (
            ("a sensitivity of 1", decimal(losses[0]), decimal(losses[1])),
            (f"the worst case, {gap}", decimal(losses[2]), decimal(losses[3])),
        ),
        Curves(
            "True privacy loss on split data",
            "width of the range",
            "ε",
            (
                ("noise for a sensitivity of 1", tuple((float(x), x * float(epsilon)) for x in range(1, 21))),
                ("noise for the worst case", ((1.0, float(epsilon)), (20.0, float(epsilon)))),
            ),
            at=float(gap),
            top=20 * float(epsilon),
        ),
    )


def _list(rows: Rows) -> str:
    return ", ".join(map(str, rows))


SCREENS = (
    Screen(
        "local-sensitivity",
        "May noise be calibrated to the data at hand?",
        "Local sensitivity and its leak under plain privacy (Kasiviswanathan and Smith 2014, section 4).",
        (
            base.epsilon("0.5", high="5"),
            base.whole("gap", "Range of the values", 8, steps=range(1, 21), low=1, high=20),
            base.real(
                "exceptions",
                "δ₁, probability of split data",
                "1e-4",
                steps=("1e-12", "1e-9", "1e-6", "1e-4", "1e-3", "0.01", "0.1"),
                low="1e-30",
                high="0.5",
            ),
        ),
        leak,
    ),
)
