"""The sentences that compare noise with sampling error."""

from fractions import Fraction

import pytest

from hubbub.answers.left_out import LeftOut
from hubbub.answers.release import Output, Release
from hubbub.answers.sampling import SamplingErrors, noise_sentences


def release(*outputs: Output, ratio: float | None = None, left_out: LeftOut | None = None) -> Release:
    rows = len(outputs[0].values)
    return Release(outputs, [ratio] * rows, Fraction(1), Fraction(0), {}, left_out=left_out)


@pytest.mark.row(68)
def test_a_known_sampling_error_is_compared_and_a_bound_says_at_least() -> None:
    exact = Output("a", "real", [100.0], [80.0], [120.0], SamplingErrors([4.0]))
    bound = Output("b", "real", [100.0], [80.0], [120.0], SamplingErrors([4.0], at_most=True))
    none = Output("m", "real", [5.0], [4.0], [6.0])
    assert noise_sentences(release(exact, bound, none)) == [
        "a: the noise is 5 times the sampling error of ±4",
        "b: the noise is at least 5 times the sampling error, which is at most ±4",
        "m: the sampling error does not follow from what was released",
    ]


def test_several_rows_give_ranges_and_the_longer_side_of_an_interval_counts() -> None:
    """The second interval ends at 0, the least that a count can be."""
    counts = Output("n", "integer", [400, 4], [370.0, 0.0], [430.0, 34.0], SamplingErrors([40.0, 4.0]))
    (sentence,) = noise_sentences(release(counts))
    assert sentence == (
        "n: the noise is 0.75 to 7.5 times the sampling error of ±4 to ±40; small groups are unreliable at this ε"
    )


def test_rows_of_one_unit_are_said_to_be_taken_as_independent() -> None:
    output = Output("n", "integer", [400], [370.0], [430.0], SamplingErrors([40.0]))
    several = noise_sentences(release(output, left_out=LeftOut("t", "patient", rows=5)))
    assert several[-1] == "sampling errors treat rows as independent, even those of one patient"
    assert len(noise_sentences(release(output, left_out=LeftOut("t", "patient", rows=1)))) == 1


def test_older_releases_have_the_ratio_of_a_count_or_nothing() -> None:
    output = Output("n", "integer", [400], [370.0], [430.0])
    assert noise_sentences(release(output, ratio=0.75)) == [
        "up to 0.75 times the sampling error of a count of that size"
    ]
    assert noise_sentences(release(output)) == []


def test_an_interval_without_ends_has_no_ratio() -> None:
    output = Output("a", "real", [1.0], [None], [None], SamplingErrors([2.0]))
    assert noise_sentences(release(output)) == ["a: the sampling error is ±2; the noise has no bound"]
