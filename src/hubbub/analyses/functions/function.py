"""User-defined function of the data owner, released with noise calibrated to its declared sensitivity in a metric.

The function is trusted and runs in this process on the exact rows, so the server accepts none from analysts.
"""

import marshal
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from typing import Any, Literal

from numpy.typing import NDArray

from hubbub.analyses.base import Arrays, PreparedAnalysis, Protection, Published, Run, Setting
from hubbub.analyses.functions.noise import BitNoise, FunctionNoise, GridNoise, PointNoise
from hubbub.analyses.rows import Rows, column
from hubbub.answers.estimate import Expected
from hubbub.core import numbers
from hubbub.core.call import AnalysisCall
from hubbub.core.events import Composed, stored_name
from hubbub.core.numbers import Number
from hubbub.errors import ParameterError
from hubbub.mechanisms.bit_flips import BitFlips
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.metric import Metric, Space
from hubbub.sql.split import gaussian_variance, zcdp_budget

#: Metrics: |a − b|, the L1 or L2 norm, or the number of differing bits.
Named = Literal["absolute", "l1", "l2", "hamming"]
RowFunction = Callable[[Mapping[str, NDArray[Any]]], Any]

_FINENESS = 1024
_MAX_OUTPUTS = 100_000


@dataclass(frozen=True)
class FunctionRequest:
    """A request to release a function of rows, with its sensitivity and metric.

    function     takes a mapping of numpy arrays by column; rows are sorted by their values
    sensitivity  declared by the owner: how far adding, removing or replacing one unit moves the value
    metric       "absolute", "l1" or "l2" for numbers, "hamming" for bits, or a `Space` with the names of its points
    outputs      number of numbers or bits in the value
    bounds       clamping bounds for numbers
    step         resolution of numbers; by default about a thousandth of the sensitivity
    total        declared by the owner: the function returns a value on every dataset. Otherwise a failure is answered
                 with a default, and the noise covers the distance between the default and any value
    """

    function: RowFunction
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
        function: RowFunction,
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
    ) -> "FunctionRequest":
        """Validate the arguments."""
        if not callable(function):
            raise ParameterError("HB194", "The function is not callable.", "Pass a function of the rows.")
        if isinstance(columns, str) or not columns:
            raise ParameterError("HB194", "No columns were given.", "Pass a list with at least one column.")
        moved = numbers.exact(sensitivity, "sensitivity")
        if not moved > 0:
            raise ParameterError(
                "HB194", "The sensitivity must be positive.", "Pass the largest change that one privacy unit can cause."
            )
        if isinstance(metric, Space):
            if len(points) != len(metric.distances) or len(set(points)) != len(points):
                raise ParameterError(
                    "HB194", "The points do not match the space.", "Pass points= with one distinct name per point."
                )
        elif metric not in ("absolute", "l1", "l2", "hamming"):
            raise ParameterError(
                "HB194", f"Unknown metric {metric!r}.", "Use 'absolute', 'l1', 'l2', 'hamming', or pass a Space."
            )
        many = numbers.integer(outputs, "outputs", 1, 1 if metric == "absolute" else _MAX_OUTPUTS)
        ends = None if bounds is None else (numbers.exact(bounds[0], "bounds"), numbers.exact(bounds[1], "bounds"))
        if ends is not None and not ends[0] < ends[1]:
            raise ParameterError(
                "HB194", "The bounds are not in increasing order.", "Pass (low, high) with low < high."
            )
        grain = None if step is None else numbers.exact(step, "step")
        if not total and ends is None and metric in ("absolute", "l1", "l2"):
            raise ParameterError(
                "HB194",
                "Without bounds, the distance between the function's values and the default for failures is unlimited.",
                "Pass bounds=(low, high), or total=True if the function returns a value on every dataset.",
            )
        return cls(function, table, tuple(columns), moved, metric, tuple(points), many, ends, grain, bool(total))

    @property
    def text(self) -> str:
        """The call as the ledger records it, with the name of the function and the hash of its code."""
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
        return AnalysisCall("release", {name: value for name, value in arguments.items() if value is not None}).text()

    @property
    def default_distance(self) -> Fraction:
        """Maximum distance of a value from the default in the metric (squared for L2); 0 for a total function."""
        if self.total:
            return Fraction(0)
        if isinstance(self.metric, Space):
            return self.metric.unit * min(max(row) for row in self.metric.distances)
        if self.metric == "hamming" or self.bounds is None:
            return Fraction(self.outputs)
        half = (self.bounds[1] - self.bounds[0]) / 2
        return self.outputs * (half * half if self.metric == "l2" else half)

    def noise(self, epsilon: Fraction, delta: Fraction) -> FunctionNoise:
        """Calibrate the mechanism of the metric to the sensitivity, or to the distance of the default if it is larger.

        Theorem (A function that may fail). Let f move by at most S between neighbors on which it returns values, and
        let a fixed value d replace f where it fails. If no value is further than R from d, then f with its default
        moves by at most max(S, R).
        Proof    On two neighbors the results are two values of f, at most S apart; one value and d, at most R apart; or
                 d twice.
        Assumes  values are clamped to the bounds before they are used, so R is half the bounds' width for each
                 number (that times the number of outputs in L1, and its root in L2), the largest distance from a
                 center of the points, or all bits. A total function has no default; the owner declares it total.
        Charges  a mechanism for max(S, R).
        Tested   tests/analyses/functions/test_failures.py::test_a_function_that_fails_on_one_neighbor_keeps_the_charge
                 tests/analyses/functions/test_failures.py::test_the_old_default_lost_a_thousand_times_the_charge
        """
        reach = self.default_distance
        if isinstance(self.metric, Space):
            moved = max(self.sensitivity, reach)
            mechanism = Metric.from_epsilon(space=self.metric, sensitivity=moved, epsilon=epsilon)
            radius = [max(row) for row in self.metric.distances]
            return PointNoise(mechanism, self.points, radius.index(min(radius)))
        if self.metric == "hamming":
            apart = numbers.integer(int(self.sensitivity), "sensitivity", 1, self.outputs)
            return BitNoise(BitFlips.from_epsilon(bits=self.outputs, distance=max(apart, int(reach)), epsilon=epsilon))
        many = self.outputs
        fine = _FINENESS * (many if self.metric == "l1" else 1)
        step = self.sensitivity / fine if self.step is None else self.step
        if not step > 0:
            raise ParameterError("HB194", "The step must be positive.", "Omit step, or pass a positive number.")
        if self.metric == "l2":
            rho = zcdp_budget(epsilon, delta)
            if not rho > 0:
                raise ParameterError(
                    "HB194", "The metric 'l2' needs δ > 0.", "Use metric='l1', or a budget with δ > 0."
                )
            steps = _root(max(self.sensitivity**2, reach) / step**2)
            squared = (steps + math.isqrt(many - 1) + 1) ** 2
            noise = Gaussian(sensitivity_squared=squared, variance=gaussian_variance(squared, rho))
            return GridNoise(noise, step, many, self.bounds)
        steps = math.ceil(max(self.sensitivity, reach) / step)
        return GridNoise(
            Laplace.from_epsilon(sensitivity=steps if many == 1 else steps + many, epsilon=epsilon),
            step,
            many,
            self.bounds,
        )

    def value(self, noise: FunctionNoise, columns: Mapping[str, NDArray[Any]]) -> Any:
        """Apply the function; on failure return the default, or raise if the function was declared total."""
        try:
            return noise.read(self.function(columns))
        except (Exception, SystemExit) as error:  # an error message could reveal data
            if self.total:
                raise FailedError from error
            return noise.default

    def prepare(self, setting: Setting) -> "FunctionRelease":
        """Prepare the release and its privacy cost."""
        table = setting.table(self.table)
        columns = tuple(column(table, name, "columns") for name in self.columns)
        noise = self.noise(setting.epsilon, setting.delta)
        used = setting.delta if self.metric == "l2" else Fraction(0)
        return FunctionRelease(
            protection=Protection((table,), table.relation, None),
            epsilon=setting.epsilon,
            delta=used,
            event=Composed(((noise.event, 1),)),
            noise=stored_name(noise.event),
            derivation=self._derivation(noise, setting.epsilon),
            expected=(Expected("value", noise.plus_minus, None, 0.0),),
            order=self,
            rows=Rows(table, columns, setting.render_options),
            mechanism=noise,
        )

    def _derivation(self, noise: FunctionNoise, epsilon: Fraction) -> tuple[str, ...]:
        metric = "a space of points" if isinstance(self.metric, Space) else self.metric
        squared = " (squared)" if self.metric == "l2" else ""
        failures = "it gives a value on every dataset: the owner's word"
        if not self.total:
            reach = numbers.brief(self.default_distance)
            failures = f"where it fails, a default stands for it, at most {reach}{squared} from every value"
        return (
            "the function is the owner's and sees rows in the curator's memory",
            f"one unit moves it by at most {numbers.brief(self.sensitivity)} in {metric}: the owner's word",
            failures,
            f"{stored_name(noise.event)} noise costs ε = {epsilon}",
        )


class FailedError(Exception):
    """A function that was declared total returned no valid value."""


def _root(square: Fraction) -> int:
    """Return the smallest integer whose square is at least the given number.

    >>> _root(Fraction(9)), _root(Fraction(901, 100))
    (3, 4)
    """
    root = math.isqrt(math.ceil(square))
    return root if root * root >= square else root + 1


def _hash(function: RowFunction) -> str:
    """Hash the code of a function. The values in a closure are not hashed: pass a new key to run it again."""
    code = getattr(function, "__code__", None)
    return sha256(repr(function).encode() if code is None else marshal.dumps(code)).hexdigest()


@dataclass(frozen=True, kw_only=True)
class FunctionRelease(PreparedAnalysis):
    """The release of a user-defined function.

    Theorem (An owner's own function). If one unit moves f by at most S in a metric, then a mechanism that is private
    for values at a distance of S in that metric makes f's value private, whatever f computes (Dwork, McSherry, Nissim
    and Smith 2006, section 3.3).
    Proof    The mechanism sees f(x) and f(x′), which are at most S apart, and nothing else of x and x′.
    Assumes  the owner declares S correctly, and declares total only a function that is; if the owner gives a finite
             universe, both are checked on all of it (`check_sensitivity`). Rows are sorted by their values, so f is a
             function of the rows and not of how they are stored. An invalid value (an error, NaN) is replaced by a
             default, whose distance from every value the noise covers (`FunctionRequest.noise`); a total function that
             fails nevertheless ends in the constant failure of every run.
    Charges  what the mechanism charges.
    Tested   tests/analyses/functions/test_function.py::test_each_metric_is_charged_what_it_costs
             tests/analyses/functions/test_declared_sensitivity.py::test_a_promise_that_is_kept_is_enumerated_to_the_charged_loss
    """

    order: FunctionRequest
    rows: Rows
    mechanism: FunctionNoise

    def run(self, run: Run) -> Published:
        """Read the rows, apply the function, and add noise."""

        def released(found: Arrays) -> Published:
            columns = self.rows.take(found).ordered().columns
            return self.mechanism.release(self.order.value(self.mechanism, columns), run.source)

        return run.ask(self.rows.sql).through(released)
