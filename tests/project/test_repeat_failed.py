"""Failed tests are repeated alone: only a few, and one that fails again fails the run."""

from tests.repeat_failed import LIMIT, TIMES, repeat


class Runs:
    """Outcomes by test, one for each run."""

    def __init__(self, **outcomes: list[bool]) -> None:
        self.outcomes = outcomes
        self.count = 0

    def __call__(self, test: str) -> bool:
        self.count += 1
        return self.outcomes[test].pop(0)


def test_what_passes_each_time_alone_does_not_fail_the_run() -> None:
    runs = Runs(a=[True] * TIMES, b=[True] * TIMES)
    assert repeat(1, ["a", "b"], runs) == 0
    assert runs.count == 2 * TIMES


def test_one_more_failure_fails_the_run() -> None:
    for place in range(TIMES):
        outcomes = [True] * TIMES
        outcomes[place] = False
        assert repeat(1, ["a", "b"], Runs(a=outcomes, b=[True] * TIMES)) == 1


def test_many_failures_and_other_ends_are_not_repeated() -> None:
    runs = Runs()
    assert repeat(1, [str(number) for number in range(LIMIT + 1)], runs) == 1
    assert repeat(1, [], runs) == 1
    for status in (2, 3, 4, 5, 137):
        assert repeat(status, ["a"], runs) == status
    assert repeat(0, ["a"], runs) == 0
    assert runs.count == 0
