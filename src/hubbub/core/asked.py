"""What was worked out for an analyst's recent questions, kept for that analyst alone.

Parsing, binding and planning are functions of the question, the declarations and the policy. They never see data, so
keeping their results tells nothing about it. But a question that was worked out before takes less time, and what one
analyst asks is not for others to find out by trying texts. So an analyst's results are kept apart from all others', in
room of their own that nobody else can fill.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from threading import Lock
from typing import Concatenate, ParamSpec, Protocol, TypeVar, cast

from hubbub.core.matrix_threads import one_matrix_thread

P = ParamSpec("P")
S = TypeVar("S", bound="_Answers")
T = TypeVar("T")

#: How many results are kept for one analyst, and how much they may weigh together; the oldest is dropped first.
MOST, ROOM = 256, 250_000


class Asked:
    """The results of one analyst's recent questions. Thread-safe."""

    def __init__(self, most: int = MOST, room: int = ROOM) -> None:
        self._most = most
        self._room = room
        self._kept: OrderedDict[Hashable, tuple[object, int]] = OrderedDict()
        self._weight = 0
        self._lock = Lock()

    def result(self, key: Hashable, make: Callable[[], T], *, weigh: Callable[[T], int]) -> T:
        """Return the result under a key, made if it is not kept. An error is raised again each time, and not kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return cast("T", self._kept[key][0])
        made = make()
        weight = weigh(made)
        if weight <= self._room:
            with self._lock:
                self._drop(key)
                self._kept[key] = (made, weight)
                self._weight += weight
                while len(self._kept) > self._most or self._weight > self._room:
                    self._drop(next(iter(self._kept)))
        return made

    def _drop(self, key: Hashable) -> None:
        self._weight -= self._kept.pop(key, (None, 0))[1]


class Same:
    """An object in a key: equal to itself alone, for objects that are kept as they are and cost much to compare."""

    def __init__(self, kept: object) -> None:
        self._kept = kept

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other._kept is self._kept

    def __hash__(self) -> int:
        return id(self._kept)


_active: ContextVar[Asked | None] = ContextVar("asked", default=None)


@contextmanager
def asking(asked: Asked) -> Iterator[None]:
    """Keep what is worked out in this thread among the results of one analyst."""
    token = _active.set(asked)
    try:
        yield
    finally:
        _active.reset(token)


def once(key: Hashable, make: Callable[[], T], *, weigh: Callable[[T], int]) -> T:
    """Work something out, once for the analyst who asks; each time where nobody is known to ask.

    The key must say exactly what is worked out: 1, 1.0 and True are equal, so it must tell their types apart. `weigh`
    gives the weight of a result, about the number of characters that it takes; one that is too heavy is not kept.

    Theorem (What was asked before). With results kept like this, what an analyst gets is what they would get without,
    and the time that it takes depends on the questions of this analyst alone, as far as parsing, binding and planning
    go. Nothing of the data is kept.
    Proof    A result is a function of its key, of the declarations and of the policy; a curator has one of each, and a
             changed hubbub.yaml makes a new curator. An analyst has one `Asked`, which no other analyst's question
             reads, fills or empties. Nothing before the charge sees data, and nothing after it is kept.
    Assumes  results are not changed by those who get them.
    Charges  nothing.
    Tested   tests/curator/test_asked.py::test_cached_plans_are_the_plans_without_a_cache
             tests/curator/test_asked.py::test_nobody_finds_what_others_asked
    """
    asked = _active.get()
    return make() if asked is None else asked.result(key, make, weigh=weigh)


class AskedByAnalyst:
    """The results of each analyst. An unknown name gets nothing that lasts."""

    def __init__(self, analysts: Iterable[str]) -> None:
        self._of = {analyst: Asked() for analyst in analysts}

    def of(self, analyst: str) -> Asked:
        """Give the results of one analyst."""
        return self._of.get(analyst) or Asked()


class _Answers(Protocol):
    asked: AskedByAnalyst


def for_analyst(answer: Callable[Concatenate[S, str, P], T]) -> Callable[Concatenate[S, str, P], T]:
    """Keep what a method works out on the way to an answer for the analyst who is its first argument.

    Linear algebra has one thread there, so that no answer depends on the number of cores.
    """

    @wraps(answer)
    def kept(self: S, analyst: str, /, *args: P.args, **options: P.kwargs) -> T:
        with asking(self.asked.of(analyst)), one_matrix_thread():
            return answer(self, analyst, *args, **options)

    return kept
