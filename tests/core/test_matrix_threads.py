"""No answer depends on how many threads linear algebra has outside of hubbub."""

import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from hubbub.analyses.tables import strategies
from hubbub.core import matrix_threads
from hubbub.core.asked import AskedByAnalyst, for_analyst
from hubbub.core.matrix_threads import one_matrix_thread

SIZE = 1024  # the least power of two from which two threads give other integers than one


@pytest.fixture
def threads() -> Iterator[Callable[..., set[int]]]:
    """Sets the number of threads of all libraries, if one is given, and returns it."""
    libraries = matrix_threads._libraries()
    assert libraries, "numpy comes with one"
    before = [library.get() for library in libraries]

    def number(*new: int) -> set[int]:
        for library in libraries:
            for each in new:
                library.set(each)
        return {library.get() for library in libraries}

    yield number
    for library, old in zip(libraries, before, strict=True):
        library.set(old)


class Curator:
    """Answers with the strategy for running totals."""

    asked = AskedByAnalyst(["ana"])

    @for_analyst
    def plan(self, analyst: str) -> strategies.Strategy:  # noqa: ARG002
        return strategies.groups(SIZE, "prefixes")


def test_a_strategy_is_the_same_for_any_number_of_threads(threads: Callable[..., set[int]]) -> None:
    matrices = []
    for number in (1, 2):
        threads(number)
        matrices.append(Curator().plan("ana").matrix)
        assert threads() == {number}
    assert np.array_equal(matrices[0], matrices[1])


def test_the_number_of_threads_comes_back_after_the_last_call_and_after_errors(
    threads: Callable[..., set[int]],
) -> None:
    threads(2)
    inside, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with one_matrix_thread():
            inside.set()
            leave.wait(20)

    other = threading.Thread(target=stay)
    other.start()
    assert inside.wait(20)
    with pytest.raises(ZeroDivisionError), one_matrix_thread():
        raise ZeroDivisionError
    assert threads() == {1}  # the other call goes on
    leave.set()
    other.join()
    assert threads() == {2}
