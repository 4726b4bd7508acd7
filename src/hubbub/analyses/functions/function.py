"""An owner's own function, released with noise by the sensitivity that its owner declares, in a metric of choice.

The function is the owner's and runs in this process, on the rows themselves; an analyst on a server cannot hand one in.
"""

import marshal
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from typing import Any, Literal

from numpy.typing import NDArray

from hubbub.analyses.base import Arrays, Published, Run, Setting
from hubbub.analyses.functions.noise import Bits, Grid, Noise, Points
from hubbub.analyses.rows import Rows, column
from hubbub.answers.estimate import Expected
from hubbub.core import numbers
from hubbub.core.call import Call
from hubbub.core.events import Composed, Event, stored_name
from hubbub.core.numbers import Number
from hubbub.core.schema import Table
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError
from hubbub.mechanisms.bit_flips import Flips
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.metric import Metric, Space
from hubbub.sql.bounding import Limits
from hubbub.sql.split import concentrated

#: How far apart two values are: |a − b|, their L1 or L2 norm, differing bits, or a table of distances between points.
Named = Literal["absolute", "l1", "l2", "hamming"]
Own = Callable[[Mapping[str, NDArray[Any]]], Any]

_FINENESS = 1024
_MOST_OUTPUTS = 100_000


@dataclass(frozen=True)
class OwnFunction:
    """What is asked for: a function of rows, how far one unit moves it, and in which metric.

    function     of a mapping of numpy arrays by column; rows stand in the order of their values
    sensitivity  the owner's word: how far one unit more or less (or another in its place) moves the value
    metric       "absolute", "l1" or "l2" for numbers, "hamming" for bits, or a `Space` with the names of its points
    outputs      how many numbers or bits the value has
    bounds       ends that numbers are clamped into
    step         what numbers are counted in; a thousandth of the sensitivity if left out
    total        the owner's word that the function gives a value on every dataset. Without it a failure is answered
                 with a default, and the noise covers the distance between the default and any value
    """

    function: Own
    table: str
    columns: tuple[str, ...]
    sensitivity: Fraction
    metric: Named | Space
    points: tuple[Hashable, ...]
    outputs: int
    bounds: tuple[Fraction, Fraction] | None
    step: Fraction | None
    total: bool

    @classmethod
    def of(
        cls,
        function: Own,
        table: str,
        columns: Sequence[str],
        *,
        sensitivity: Number,
        metric: Named | Space = "absolute",
        points: Sequence[Hashable] = (),
        outputs: int = 1,
        bounds: tuple[Number, Number] | None = None,
        step: Number | None = None,
        total: bool = False,
    ) -> "OwnFunction":
        """Check what was said."""
        if not callable(function):
            raise ParameterError("HB194", "this is not a function.", "Give a function of the rows, or a number.")
        if isinstance(columns, str) or not columns:
            raise ParameterError("HB194", "it is not said which columns the function sees.", "Name at least one.")
        moved = numbers.exact(sensitivity, "sensitivity")
        if not moved > 0:
            raise ParameterError("HB194", "a sensitivity is positive.", "Say how far one unit moves the value.")
        if isinstance(metric, Space):
            if len(points) != len(metric.distances) or len(set(points)) != len(points):
                raise ParameterError("HB194", "the points of the space are not named.", "Give points=, each once.")
        elif metric not in ("absolute", "l1", "l2", "hamming"):
            raise ParameterError(
                "HB194", f"{metric!r} is not a metric.", "Say 'absolute', 'l1', 'l2', 'hamming', or give a Space."
            )
        many = numbers.integer(outputs, "outputs", 1, 1 if metric == "absolute" else _MOST_OUTPUTS)
        ends = None if bounds is None else (numbers.exact(bounds[0], "bounds"), numbers.exact(bounds[1], "bounds"))
        if ends is not None and not ends[0] < ends[1]:
            raise ParameterError("HB194", "the bounds do not rise.", "Give (low, high), low < high.")
        grain = None if step is None else numbers.exact(step, "step")
        if not total and ends is None and metric in ("absolute", "l1", "l2"):
            raise ParameterError(
                "HB194",
                "a function that fails is answered with a default, and nothing bounds how far that is from"
                " its other values.",
                "Pass bounds=(low, high), or total=True if the function returns a value on every dataset.",
            )
        return cls(function, table, tuple(columns), moved, metric, tuple(points), many, ends, grain, bool(total))

    @property
    def text(self) -> str:
        """The text of the call, as it stands in the ledger; the function is named, and known by its code's hash."""
        metric = self.metric
        space = None if not isinstance(metric, Space) else [str(metric.unit), *map(list, metric.distances)]
        arguments = {
            "table": self.table,
            "columns": list(self.columns),
            "code": _hash(self.function),
            "function": getattr(self.function, "__name__", type(self.function).__name__),
            "sensitivity": str(self.sensitivity),
            "metric": "space" if isinstance(metric, Space) else metric,
            "space": None if space is None else sha256(repr((space, self.points)).encode()).hexdigest(),
            "outputs": self.outputs,
            "bounds": None if self.bounds is None else [str(end) for end in self.bounds],
            "step": None if self.step is None else str(self.step),
            "total": True if self.total else None,
        }
        return Call("release", {name: value for name, value in arguments.items() if value is not None}).text()

    @property
    def default_reach(self) -> Fraction:
        """How far a value can be from the default, in the metric (of L2: its square); 0 where none is ever used."""
        if self.total:
            return Fraction(0)
        if isinstance(self.metric, Space):
            return self.metric.unit * min(max(row) for row in self.metric.distances)
        if self.metric == "hamming" or self.bounds is None:
            return Fraction(self.outputs)
        half = (self.bounds[1] - self.bounds[0]) / 2
        return self.outputs * (half * half if self.metric == "l2" else half)

    def noise(self, epsilon: Fraction, delta: Fraction) -> Noise:
        """Calibrate the mechanism of the metric to the sensitivity, or to the distance of the default if it is larger.

        Theorem (A function that may fail). Let f move by at most S between neighbors on which it gives values, and let
        d, a fixed value, stand for f where it gives none. If no value is further than R from d, then f with its
        default moves by at most max(S, R).
        Proof    On two neighbors f gives two values, which are S apart; one value and d, which are R apart; or d twice.
        Assumes  values are clamped into the bounds before they are used, so R is half the bounds' width for each
                 number (that times the number of outputs in L1, and its root in L2), the largest distance from a
                 center of the points, or all bits. A total function has no default, on the owner's word.
        Charges  a mechanism for max(S, R).
        Tested   tests/analyses/functions/test_failures.py::test_a_function_that_fails_on_one_neighbor_keeps_the_charge
                 tests/analyses/functions/test_failures.py::test_the_old_default_lost_a_thousand_times_the_charge
        """
        reach = self.default_reach
        if isinstance(self.metric, Space):
            moved = max(self.sensitivity, reach)
            mechanism = Metric.from_epsilon(space=self.metric, sensitivity=moved, epsilon=epsilon)
            radius = [max(row) for row in self.metric.distances]
            return Points(mechanism, self.points, radius.index(min(radius)))
        if self.metric == "hamming":
            apart = numbers.integer(int(self.sensitivity), "sensitivity", 1, self.outputs)
            return Bits(Flips.from_epsilon(bits=self.outputs, distance=max(apart, int(reach)), epsilon=epsilon))
        many = self.outputs
        fine = _FINENESS * (many if self.metric == "l1" else 1)
        step = self.sensitivity / fine if self.step is None else self.step
        if not step > 0:
            raise ParameterError("HB194", "a step is positive.", "Leave it out, or choose a smaller one.")
        if self.metric == "l2":
            rho = concentrated(epsilon, delta)
            if not rho > 0:
                raise ParameterError("HB194", "an L2 sensitivity needs a δ.", "Use metric='l1', or a budget with δ.")
            steps = _root(max(self.sensitivity**2, reach) / step**2)
            squared = (steps + math.isqrt(many - 1) + 1) ** 2
            return Grid(Gaussian.from_rho(sensitivity_squared=squared, rho=rho), step, many, self.bounds)
        steps = math.ceil(max(self.sensitivity, reach) / step)
        return Grid(
            Laplace.from_epsilon(sensitivity=steps if many == 1 else steps + many, epsilon=epsilon),
            step,
            many,
            self.bounds,
        )

    def value(self, noise: Noise, columns: Mapping[str, NDArray[Any]]) -> Any:
        """Apply the function; where it fails, give the default, or raise if it was said to be total."""
        try:
            return noise.read(self.function(columns))
        except (Exception, SystemExit) as error:  # whatever it is, it must not be seen
            if self.total:
                raise FailedError from error
            return noise.default

    def prepare(self, setting: Setting) -> "Released":
        """Price it."""
        table = setting.table(self.table)
        columns = tuple(column(table, name, "columns") for name in self.columns)
        noise = self.noise(setting.epsilon, setting.delta)
        used = setting.delta if self.metric == "l2" else Fraction(0)
        return Released(self, Rows(table, columns, setting.words), setting.epsilon, used, noise)


class FailedError(Exception):
    """A function that was said to be total gave no value."""


def _root(square: Fraction) -> int:
    """Give the least integer whose square is not below a number.

    >>> _root(Fraction(9)), _root(Fraction(901, 100))
    (3, 4)
    """
    whole = math.isqrt(math.ceil(square))
    return whole if whole * whole >= square else whole + 1


def _hash(function: Own) -> str:
    """Tell functions apart by their code; what a closure holds is not seen, so a new key asks anew."""
    code = getattr(function, "__code__", None)
    return sha256(repr(function).encode() if code is None else marshal.dumps(code)).hexdigest()


@dataclass(frozen=True)
class Released:
    """A priced release of an owner's own function.

    Theorem (An owner's own function). If one unit moves f by at most S in a metric, then a mechanism that is private
    for values at a distance of S in that metric makes f's value private, whatever f computes (Dwork, McSherry, Nissim
    and Smith 2006, section 3.3).
    Proof    The mechanism sees f(x) and f(x′), which are at most S apart, and nothing else of x and x′.
    Assumes  S, and that a total function is total, on the owner's word; where the owner names a finite universe, both
             are checked on all of it (`promise`). Rows come in the order of their values, so f is a function of the
             rows and not of how they are stored. A value that is none (an error, NaN) is replaced by a default, whose
             distance from every value the noise covers (`OwnFunction.noise`); a total function that fails after all
             ends in the constant failure of every run.
    Charges  what the mechanism charges.
    Tested   tests/analyses/functions/test_function.py::test_each_metric_is_charged_what_it_costs
             tests/analyses/functions/test_declared_sensitivity.py::test_a_promise_that_is_kept_is_enumerated_to_the_charged_loss
    """

    order: OwnFunction
    rows: Rows
    epsilon: Fraction
    delta: Fraction
    mechanism: Noise

    @property
    def tables(self) -> tuple[Table, ...]:
        """The table that is read."""
        return (self.rows.table,)

    @property
    def event(self) -> Event:
        """One draw."""
        return Composed(((self.mechanism.event, 1),))

    @property
    def relation(self) -> Relation:
        """What neighbors are."""
        return self.rows.table.relation

    @property
    def limits(self) -> Limits | None:
        """The function sees all rows of a unit; the declared sensitivity is for all of them."""
        return None

    @property
    def noise(self) -> str:
        """The kind of noise."""
        return stored_name(self.mechanism.event)

    @property
    def derivation(self) -> tuple[str, ...]:
        """From the owner's word to the noise."""
        metric = "a space of points" if isinstance(self.order.metric, Space) else self.order.metric
        return (
            "the function is the owner's and sees rows in the curator's memory",
            f"one unit moves it by at most {numbers.brief(self.order.sensitivity)} in {metric}: the owner's word",
            self._failures,
            f"{self.noise} noise costs ε = {self.epsilon}",
        )

    @property
    def _failures(self) -> str:
        if self.order.total:
            return "it gives a value on every dataset: the owner's word"
        reach = self.order.default_reach
        squared = " (squared)" if self.order.metric == "l2" else ""
        return f"where it fails, a default stands for it, at most {numbers.brief(reach)}{squared} from every value"

    @property
    def expected(self) -> tuple[Expected, ...]:
        """What the noise does."""
        return (Expected("value", self.mechanism.plus_minus, None, 0.0),)

    def run(self, run: Run) -> Published:
        """Read the rows, apply the function, draw."""

        def released(found: Arrays) -> Published:
            columns = self.rows.take(found).ordered().columns
            return self.mechanism.release(self.order.value(self.mechanism, columns), run.source)

        return run.ask(self.rows.sql).through(released)
