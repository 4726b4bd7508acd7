"""The terms of a stream: what it counts and at what privacy cost. They are charged once and never change."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.streams.density import MAX_UNIVERSE, PLACES, Density
from hubbub.analyses.streams.root import SquareRootCounter, squared_norm
from hubbub.analyses.streams.tree import MAX_HORIZON, TreeCounter
from hubbub.core import numbers
from hubbub.core.events import Composed, Event
from hubbub.core.numbers import brief
from hubbub.core.reals import floor_to
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql.split import rho_of_streams

Integers = NDArray[np.int64]

#: Maximum number of answers that a stream stores (times × bins).
MAX_CELLS = 1 << 22
MAX_BINS = 4096
_MIN_WINDOW = 16

#: Version of the rules that turn terms into noise. Edition 1 charged a density for one element under both relations.
EDITION = 2
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The terms of a stream, of one of two kinds.

    density   the fraction of the universe low, …, high that has arrived; at most `outputs` answers; protects each
              element with all of its arrivals; the state is pan-private against one intrusion, and the number of
              arrivals stays hidden
    count     the arrivals in each bin, or the sum of the arrivals (each clamped to 0, …, bound), with an answer after
              every arrival, up to `horizon` or over the last `window` arrivals without end; protects the content of
              one arrival; the number of arrivals is public
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
            _refuse(
                f"Invalid stream name {self.name!r}.",
                "Use 1 to 63 characters from a–z, 0–9, _ and -, starting with a letter or digit.",
            )
        numbers.epsilon(self.epsilon)
        if self.delta:
            numbers.delta(self.delta)
        if self.kind == "density":
            self._check_density()
        elif self.kind == "count":
            self._check_count()
        else:
            _refuse(f"Unknown kind of stream {self.kind!r}.", "Use density or count.")

    def _check_density(self) -> None:
        if self.universe is None:
            _refuse("A density needs a universe.", "Pass the smallest and the largest element, such as [0, 99999].")
        low, high = self.universe
        numbers.integer(low, "universe", -(1 << 62), 1 << 62)
        numbers.integer(high, "universe", low, low + MAX_UNIVERSE - 1)
        if self.horizon or self.window or self.bins or self.bound != 1:
            _refuse("A density does not accept horizon, window, bins or bound.", "Remove them.")

    def _check_count(self) -> None:
        if self.universe is not None or self.classic or self.outputs != 1:
            _refuse("A count does not accept universe, classic or outputs.", "Remove them.")
        if (self.horizon is None) == (self.window is None):
            _refuse("A count needs either a horizon or a window.", "Pass exactly one of the two.")
        least = 1 if self.window is None else _MIN_WINDOW
        length = numbers.integer(self.length, "horizon" if self.window is None else "window", least, MAX_HORIZON)
        numbers.integer(self.bound, "bound", 1, 10**6)
        bins = self.bins or ("",)
        if not len(bins) == len(set(bins)) <= MAX_BINS or length * len(bins) > MAX_CELLS:
            _refuse(
                f"A count can have at most {MAX_BINS} distinct bins and {MAX_CELLS} answers (length × bins).",
                "Use fewer bins, or a shorter horizon or window.",
            )
        if self.bins is not None and not (self.bins and all(each and each == each.strip() for each in self.bins)):
            _refuse("bins must be a list of names without surrounding spaces.", "Pass at least one bin name.")
        if self.bins and self.bound != 1:
            _refuse("bins and bound cannot be combined: an arrival in a bin counts 1.", "Remove one of them.")
        if self.method not in ("tree", "root"):
            _refuse(f"Unknown method {self.method!r}.", "Use tree or root.")
        if self.method == "root" and (not self.delta or self.private_state):
            _refuse(
                "The method root needs δ > 0 and cannot keep a private state.",
                "Use the method tree, or set a positive δ and private_state to FALSE.",
            )

    @property
    def length(self) -> int:
        """Number of arrivals after which a counter ends or starts again."""
        return self.window or self.horizon or 0

    @property
    def density(self) -> Density:
        """The mechanism of a density."""
        low, high = self.universe or (0, 0)
        size = high - low + 1
        if self.classic:
            # equal shares for the intrusion and for each answer
            half = floor_to(self.epsilon / ((1 + self.outputs) * self.elements), PLACES)
            return Density.printed(size=size, epsilon=half, outputs=self.outputs, elements=self.elements)
        return Density.from_epsilon(size=size, epsilon=self.epsilon, outputs=self.outputs, elements=self.elements)

    @property
    def undercharged(self) -> bool:
        """Whether these terms are of edition 1 and their charge does not cover the relation."""
        return self.edition == 1 and self.kind == "density" and self.relation is Relation.REPLACE

    @property
    def elements(self) -> int:
        """Number of elements of a density that one privacy unit changes."""
        return 1 if self.edition == 1 else self.relation.units_changed

    @property
    def counter(self) -> TreeCounter | SquareRootCounter:
        """The mechanism of a count over one horizon or window."""
        bins = len(self.bins or ("",))
        # replacing an arrival changes two bins
        changed = 2 if self.relation is Relation.REPLACE and self.bins else 1
        if self.method == "root":
            squared = squared_norm(self.length) * self.bound**2 * changed
            gaussian = Gaussian.from_rho(sensitivity_squared=squared, rho=self.rho)
            return SquareRootCounter(horizon=self.length, bins=bins, noise=gaussian)
        levels = TreeCounter.levels(self.length)
        noise: Laplace | Gaussian
        if self.delta:
            noise = Gaussian.from_rho(sensitivity_squared=levels * self.bound**2 * changed, rho=self.rho)
        else:
            noise = Laplace.from_epsilon(sensitivity=levels * self.bound * changed, epsilon=self.epsilon)
        return TreeCounter(horizon=self.length, bins=bins, noise=noise, private_state=self.private_state)

    @property
    def rho(self) -> Fraction:
        """The zCDP parameter ρ that (ε, δ) allows."""
        rho = rho_of_streams(self.epsilon, self.delta)
        if not rho >= numbers.EPSILON_MIN:
            _refuse("This ε and δ are too small for Gaussian noise.", "Increase ε or δ, or pass delta => 0.")
        return rho

    @property
    def event(self) -> Event:
        """The privacy event that is charged once, when the stream is created.

        Theorem (Blocks of time). A window's counter starts again with every block of `window` arrivals, and answers the
        window's count as the sum of the end of the previous block and the start of this one. One arrival is in one
        block, so the loss of all answers, without end, is that of one counter over one block.
        Tested   tests/analyses/streams/test_stream.py::test_a_window_is_answered_from_two_blocks
        """
        return self.density.event if self.kind == "density" else Composed(((self.counter.noise.event, 1),))

    @property
    def derivation(self) -> tuple[str, ...]:
        """Explanation of the noise, for people; receipts store these lines."""
        if self.kind == "density":
            density = self.density
            return (
                f"one bit for each of {density.size} elements: a fair coin, then one of ½ + {brief(density.bias)}"
                " from each arrival on",
                f"a look into the state costs ε = {brief(density.state)}, once; two looks are not covered",
                f"each of {density.outputs} answers: the number of ones, which a unit moves by {density.elements}, with"
                f" two-sided geometric noise of scale {brief(density.scale)}",
                "all arrivals of one element are protected, and the number of arrivals is shown to nobody",
            )
        counter, noise = self.counter, self.counter.noise
        size = noise.scale if isinstance(noise, Laplace) else noise.variance
        what = "two-sided geometric noise of scale" if isinstance(noise, Laplace) else "Gaussian noise of variance"
        how = (
            f"a tree of {counter.depth} levels" if isinstance(counter, TreeCounter) else "the square root of the matrix"
        )
        span = f"{self.length} arrivals" + ("" if self.window is None else ", then anew")
        look = "the state survives one look" if self.private_state else "the state is to be kept secret"
        return (
            f"running counts over {span}, by {how}",
            f"one arrival moves it by {_sensitivity(noise)}; {what} {brief(Fraction(size))}",
            f"one arrival is protected, whoever caused it; the number of arrivals is public; {look}",
        )

    def parse_lines(self, lines: Sequence[str]) -> Integers:
        """Parse arrivals; a line that is not in the universe, a bin or a number becomes an empty arrival.

        For a density: the index of each element, or −1. For a count: a row with what each arrival adds to each bin.
        """
        texts: NDArray[np.str_] = np.char.strip(np.array(lines, dtype=np.str_))
        if self.bins is not None:
            order = np.argsort(np.array(self.bins, dtype=np.str_))
            ranked = np.array(self.bins, dtype=np.str_)[order]
            rank = np.minimum(np.searchsorted(ranked, texts), len(ranked) - 1)
            rows = np.zeros((len(texts), len(self.bins)), dtype=np.int64)
            rows[np.arange(len(texts)), order[rank]] = ranked[rank] == texts
            return rows
        valid = np.array([_INTEGER.fullmatch(text) is not None for text in texts.tolist()], dtype=np.bool_)
        if self.universe is not None:
            values = np.where(valid, texts, str(self.universe[0] - 1)).astype(np.int64) - self.universe[0]
            inside = (values >= 0) & (values <= self.universe[1] - self.universe[0])
            return np.where(inside, values, -1)
        return np.clip(np.where(valid, texts, "0").astype(np.int64), 0, self.bound)[:, None]

    def to_json(self) -> dict[str, Any]:
        """Return the terms as JSON values."""
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
        """Read the result of `form`."""
        given = {"edition": 1, **form}
        given["epsilon"], given["delta"] = Fraction(given["epsilon"]), Fraction(given["delta"])
        given["relation"] = Relation(given["relation"])
        given["universe"] = None if given["universe"] is None else tuple(given["universe"])
        given["bins"] = None if given["bins"] is None else tuple(given["bins"])
        return cls(**given)


_INTEGER = re.compile(r"-?[0-9]{1,18}")


def _sensitivity(noise: Laplace | Gaussian) -> str:
    if isinstance(noise, Laplace):
        return f"at most {noise.sensitivity} in all"
    return f"at most {float(noise.sensitivity_squared) ** 0.5:.6g} in the Euclidean norm"


def _refuse(why: str, remedy: str) -> NoReturn:
    raise QueryError("HB530", why, remedy)
