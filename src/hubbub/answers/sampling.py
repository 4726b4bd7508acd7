"""The privacy noise of an answer beside its sampling error, in words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hubbub.answers.columns import Column
from hubbub.answers.estimate import significant

if TYPE_CHECKING:
    from hubbub.answers.release import Output, Release

_UNKNOWN = "the sampling error does not follow from what was released"


@dataclass(frozen=True, slots=True)
class SamplingErrors:
    """The ± at 95% of one column between samples, for each row; None where it is unknown.

    at_most  whether the numbers are upper bounds, from the declared bounds of a column
    """

    values: Sequence[float | None]
    at_most: bool = False


def noise_sentences(release: "Release") -> list[str]:
    """Compare the noise of each column with its sampling error, one sentence for each column.

    The rows are taken as independent draws from a population, which is stated where a unit may have several.
    """
    noisy = [output for output in release.outputs if output.low is not None]
    if not any(output.sampling is not None for output in noisy):
        return [] if isinstance(release.ratio, Column) or not any(release.ratio) else [_earlier(release.ratio)]
    # an answer with joint intervals has those of single cells beside them
    single = [
        replace(each, low=each.joint[0], high=each.joint[1]) if release.joint and each.joint is not None else each
        for each in noisy
    ]
    sentences = [f"{output.name}: {_compare(output)}" for output in single]
    bounds = release.left_out
    if bounds is not None and bounds.unit is not None and bounds.rows != 1 and bounds.counts == "rows":
        sentences.append(f"sampling errors treat rows as independent, even those of one {bounds.unit}")
    return sentences


def _compare(output: "Output") -> str:
    sampling = output.sampling
    known = _known([] if sampling is None else sampling.values)
    if sampling is None or not known:
        return _UNKNOWN
    ratios = _known(_ratios(output, sampling))
    ends = sorted({significant(min(known)), significant(max(known))}, key=len)
    size = f"±{ends[0]}" if len(ends) == 1 else f"±{significant(min(known))} to ±{significant(max(known))}"
    at_most = "at most " if sampling.at_most else ""
    if not ratios:
        return f"the sampling error is {at_most}{size}; the noise has no bound"
    least, most = min(ratios), max(ratios)
    if sampling.at_most:
        return f"the noise is at least {_number(least)} times the sampling error, which is at most {size}"
    times = _number(most) if _number(least) == _number(most) else f"{_number(least)} to {_number(most)}"
    small = "; small groups are unreliable at this ε" if most > 1 and len(known) > 1 else ""
    return f"the noise is {times} times the sampling error of {size}{small}"


def _ratios(output: "Output", sampling: SamplingErrors) -> Sequence[float | None]:
    """Divide the ± of the noise by the sampling error; None where either is unknown.

    The ± is the longer side of the interval: the other may end at the least or largest possible result.
    """
    parts = (output.values, output.low, output.high, sampling.values)
    arrays = [each.array.astype("float64") for each in parts if isinstance(each, Column)]
    if len(arrays) == len(parts):
        import numpy as np  # here, because the light client does without

        return Column(np.maximum(arrays[2] - arrays[0], arrays[0] - arrays[1]) / arrays[3])
    ratios: list[float | None] = []
    for cell, low, high, size in zip(output.values, output.low or (), output.high or (), sampling.values, strict=True):
        known = low is not None and high is not None and isinstance(cell, int | float) and size
        ratios.append(max(high - cell, cell - low) / size if known else None)  # type: ignore[operator]
    return ratios


def _known(values: Sequence[float | None]) -> list[float]:
    """Return the numbers that are known; of a long column the least and the largest, which say the same here."""
    if isinstance(values, Column):
        numbers = values.array[~values.null]
        return [float(numbers.min()), float(numbers.max())] if len(numbers) else []
    return [value for value in values if value is not None]


def _earlier(ratio: Sequence[float | None]) -> str:
    """Describe the ratio of releases that state no sampling error: that of a count."""
    largest = max(each for each in ratio if each is not None)
    return f"up to {_number(largest)} times the sampling error of a count of that size"


def _number(value: float) -> str:
    return f"{value:,.2g}" if value < 10 else f"{value:,.0f}"
