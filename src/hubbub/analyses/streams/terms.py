"""The terms of a stream: what it keeps count of, at what price. Made once, charged once, never changed."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.streams.density import MOST, PLACES, Density
from hubbub.analyses.streams.root import Root, squared_norm
from hubbub.analyses.streams.tree import LONGEST, Tree
from hubbub.core import numbers
from hubbub.core.events import Composed, Event
from hubbub.core.numbers import brief
from hubbub.core.reals import floor_to
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql.split import concentrated

Integers = NDArray[np.int64]

#: Cells (times × bins) whose answers a stream keeps.
MOST_CELLS = 1 << 22
MOST_BINS = 4096
_SHORTEST_WINDOW = 16

#: How terms are turned into noise. Edition 1 charged a density for one element under both relations.
EDITION = 2
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a stream is.

    density   the part of the universe low, …, high that has arrived; `outputs` answers at most; every element is
              protected with all of its arrivals, and the state survives a look; nobody learns how many arrivals
              there were
    count     arrivals, in each of some bins or added up (each clamped into 0, …, bound), answered after every arrival
              up to `horizon`, or over the last `window` for ever; what one arrival is is protected, and how many there
              were is public
    """

    name: str
    kind: str
    epsilon: Fraction
    delta: Fraction = Fraction(0)
    universe: tuple[int, int] | None = None
    outputs: int = 1
    classic: bool = False
    horizon: int | None = None
    window: int | None = None
    bins: tuple[str, ...] | None = None
    bound: int = 1
    method: str = "tree"
    private_state: bool = False
    relation: Relation = Relation.ADD_REMOVE
    edition: int = EDITION

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            _refuse("a stream's name has 1 to 63 of a–z, 0–9, _ and -.", "Choose such a name.")
        numbers.epsilon(self.epsilon)
        if self.delta:
            numbers.delta(self.delta)
        if self.kind == "density":
            self._check_density()
        elif self.kind == "count":
            self._check_count()
        else:
            _refuse(f"there are no streams of the kind {self.kind!r}.", "Say density or count.")

    def _check_density(self) -> None:
        if self.universe is None:
            _refuse("a density needs its universe.", "Say the smallest and the largest number: [0, 99999].")
        low, high = self.universe
        numbers.integer(low, "universe", -(1 << 62), 1 << 62)
        numbers.integer(high, "universe", low, low + MOST - 1)
        if self.horizon or self.window or self.bins or self.bound != 1:
            _refuse("a density has neither horizon nor window, bins or bound.", "Leave them out.")

    def _check_count(self) -> None:
        if self.universe is not None or self.classic or self.outputs != 1:
            _refuse("a count has no universe, and is answered after every arrival.", "Leave them out.")
        if (self.horizon is None) == (self.window is None):
            _refuse("a count runs up to a horizon, or over a window.", "Say one of the two.")
        least = 1 if self.window is None else _SHORTEST_WINDOW
        length = numbers.integer(self.length, "horizon" if self.window is None else "window", least, LONGEST)
        numbers.integer(self.bound, "bound", 1, 10**6)
        bins = self.bins or ("",)
        if not len(bins) == len(set(bins)) <= MOST_BINS or length * len(bins) > MOST_CELLS:
            _refuse(
                f"a count has at most {MOST_BINS} different bins, and {MOST_CELLS} times × bins.",
                "Take fewer bins, or a shorter horizon or window.",
            )
        if self.bins is not None and not (self.bins and all(each and each == each.strip() for each in self.bins)):
            _refuse("a bin has a name, without space around it: an empty line is no arrival.", "Name the bins.")
        if self.bins and self.bound != 1:
            _refuse("an arrival in a bin counts 1.", "Leave out bins or bound.")
        if self.method not in ("tree", "root"):
            _refuse(f"there is no method called {self.method!r}.", "Say tree or root.")
        if self.method == "root" and (not self.delta or self.private_state):
            _refuse(
                "the square root needs a δ above 0, and its state is not private.",
                "Say method tree, or allow a δ and leave the state secret.",
            )

    @property
    def length(self) -> int:
        """Times after which a counter ends or begins again."""
        return self.window or self.horizon or 0

    @property
    def density(self) -> Density:
        """The table of a density."""
        low, high = self.universe or (0, 0)
        size = high - low + 1
        if self.classic:
            # two equal halves for one look and one answer
            half = floor_to(self.epsilon / ((1 + self.outputs) * self.elements), PLACES)
            return Density.printed(size=size, epsilon=half, outputs=self.outputs, elements=self.elements)
        return Density.from_epsilon(size=size, epsilon=self.epsilon, outputs=self.outputs, elements=self.elements)

    @property
    def undercharged(self) -> bool:
        """Whether these are terms of edition 1 whose charge does not cover the relation."""
        return self.edition == 1 and self.kind == "density" and self.relation is Relation.REPLACE

    @property
    def elements(self) -> int:
        """Elements of a density that one unit changes."""
        return 1 if self.edition == 1 else self.relation.units_changed

    @property
    def counter(self) -> Tree | Root:
        """The counter of a count, over one horizon or window."""
        bins = len(self.bins or ("",))
        # a replaced arrival leaves one bin and enters another
        moved = 2 if self.relation is Relation.REPLACE and self.bins else 1
        if self.method == "root":
            squared = squared_norm(self.length) * self.bound**2 * moved
            rough = Gaussian.from_rho(sensitivity_squared=squared, rho=self.rho)
            return Root(horizon=self.length, bins=bins, noise=rough)
        levels = Tree.levels(self.length)
        noise: Laplace | Gaussian
        if self.delta:
            noise = Gaussian.from_rho(sensitivity_squared=levels * self.bound**2 * moved, rho=self.rho)
        else:
            noise = Laplace.from_epsilon(sensitivity=levels * self.bound * moved, epsilon=self.epsilon)
        return Tree(horizon=self.length, bins=bins, noise=noise, private_state=self.private_state)

    @property
    def rho(self) -> Fraction:
        """The zero-concentrated loss that (ε, δ) allows."""
        rho = concentrated(self.epsilon, self.delta)
        if not rho >= numbers.EPSILON_MIN:
            _refuse("this ε and δ leave no room for Gaussian noise.", "Ask for more of them, or say delta => 0.")
        return rho

    @property
    def event(self) -> Event:
        """The facts that are charged, once, when the stream is made.

        Theorem (Blocks of time). A window's counter begins anew with every block of `window` arrivals, and gives the
        window's count as the rest of the block before it and the beginning of this one. One arrival is in one block,
        so the loss of all answers for ever is that of one counter over one block.
        Tested   tests/analyses/streams/test_stream.py::test_a_window_is_answered_from_two_blocks
        """
        return self.density.event if self.kind == "density" else Composed(((self.counter.noise.event, 1),))

    @property
    def derivation(self) -> tuple[str, ...]:
        """How the noise follows, for people."""
        if self.kind == "density":
            made = self.density
            return (
                f"one bit for each of {made.size} elements: a fair coin, then one of ½ + {brief(made.bias)}"
                " from each arrival on",
                f"a look into the state costs ε = {brief(made.state)}, once; two looks are not covered",
                f"each of {made.outputs} answers: the number of ones, which a unit moves by {made.elements}, with"
                f" two-sided geometric noise of scale {brief(made.scale)}",
                "all arrivals of one element are protected, and the number of arrivals is shown to nobody",
            )
        counter, noise = self.counter, self.counter.noise
        size = noise.scale if isinstance(noise, Laplace) else noise.variance
        what = "two-sided geometric noise of scale" if isinstance(noise, Laplace) else "Gaussian noise of variance"
        how = f"a tree of {counter.depth} levels" if isinstance(counter, Tree) else "the square root of the matrix"
        span = f"{self.length} arrivals" + ("" if self.window is None else ", then anew")
        look = "the state survives one look" if self.private_state else "the state is to be kept secret"
        return (
            f"running counts over {span}, by {how}",
            f"one arrival moves it by {_moved(noise)}; {what} {brief(Fraction(size))}",
            f"one arrival is protected, whoever caused it; the number of arrivals is public; {look}",
        )

    def numbered(self, lines: Sequence[str]) -> Integers:
        """Read arrivals; whatever is not one of the universe, the bins or the numbers is the arrival of nothing.

        Of a density: the number of each element, or −1. Of a count: a row of what it adds to each bin.
        """
        texts: NDArray[np.str_] = np.char.strip(np.array(lines, dtype=np.str_))
        if self.bins is not None:
            order = np.argsort(np.array(self.bins, dtype=np.str_))
            ranked = np.array(self.bins, dtype=np.str_)[order]
            place = np.minimum(np.searchsorted(ranked, texts), len(ranked) - 1)
            rows = np.zeros((len(texts), len(self.bins)), dtype=np.int64)
            rows[np.arange(len(texts)), order[place]] = ranked[place] == texts
            return rows
        good = np.array([_WHOLE.fullmatch(text) is not None for text in texts.tolist()], dtype=np.bool_)
        if self.universe is not None:
            values = np.where(good, texts, str(self.universe[0] - 1)).astype(np.int64) - self.universe[0]
            inside = (values >= 0) & (values <= self.universe[1] - self.universe[0])
            return np.where(inside, values, -1)
        return np.clip(np.where(good, texts, "0").astype(np.int64), 0, self.bound)[:, None]

    def form(self) -> dict[str, Any]:
        """Give it for JSON."""
        return {
            "name": self.name,
            "kind": self.kind,
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "universe": None if self.universe is None else list(self.universe),
            "outputs": self.outputs,
            "classic": self.classic,
            "horizon": self.horizon,
            "window": self.window,
            "bins": None if self.bins is None else list(self.bins),
            "bound": self.bound,
            "method": self.method,
            "private_state": self.private_state,
            "relation": self.relation.value,
            "edition": self.edition,
        }

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> Self:
        """Read what `form` gives."""
        given = {"edition": 1, **form}
        given["epsilon"], given["delta"] = Fraction(given["epsilon"]), Fraction(given["delta"])
        given["relation"] = Relation(given["relation"])
        given["universe"] = None if given["universe"] is None else tuple(given["universe"])
        given["bins"] = None if given["bins"] is None else tuple(given["bins"])
        return cls(**given)


_WHOLE = re.compile(r"-?[0-9]{1,18}")


def _moved(noise: Laplace | Gaussian) -> str:
    if isinstance(noise, Laplace):
        return f"at most {noise.sensitivity} in all"
    return f"at most {float(noise.sensitivity_squared) ** 0.5:.6g} in the Euclidean norm"


def _refuse(why: str, remedy: str) -> NoReturn:
    raise QueryError("HB530", why, remedy)
