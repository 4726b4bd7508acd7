"""Sample and aggregate: run an untrusted function on blocks of rows and release a private mean or median.

The function runs once per block, in a sandbox (`hubbub.analyses.functions.sandbox`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.base import Arrays, PreparedAnalysis, Protection, Published, Run, Setting
from hubbub.analyses.functions.sandbox import Code, Sandbox
from hubbub.analyses.rows import Rows, column
from hubbub.answers.estimate import Expected
from hubbub.answers.release import Output
from hubbub.core import numbers
from hubbub.core.call import AnalysisCall
from hubbub.core.events import Composed
from hubbub.core.numbers import Number
from hubbub.errors import ParameterError, RunError
from hubbub.mechanisms.exponential import Exponential
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.permute_and_flip import RULES, PermuteAndFlip, selection_rule
from hubbub.noise.source import RandomSource
from hubbub.noise.uniform import uniform_below
from hubbub.sql.split import portions

LEVEL = Fraction(95, 100)
How = Literal["median", "mean"]

#: Steps of a clamped answer, and candidates for a median.
_STEPS = 1 << 16
_CANDIDATES = 1025

Numbers = NDArray[np.int64]
Ends = tuple[Fraction, Fraction]


class AggregateOptions(TypedDict, total=False):
    """Options of sample and aggregate; see `AggregateRequest`."""

    blocks: int
    how: How
    default: Number | Sequence[Number] | None
    seconds: Number
    memory: int
    imports: Sequence[str]


@dataclass(frozen=True)
class AggregateRequest:
    """A validated request for sample and aggregate.

    function  a self-contained `def`, or source code that defines f(rows); rows are numpy arrays by column
    bounds    clamping bounds of the answer, or of each number of it
    default   replacement for a missing answer; by default the midpoint of the bounds
    seconds   time per block, always used up in full; blocks run one after the other
    memory    megabytes per block
    imports   libraries to load beforehand, because the function itself cannot open files
    """

    code: Code
    table: str
    columns: tuple[str, ...]
    bounds: tuple[Ends, ...]
    blocks: int
    how: How
    default: tuple[Fraction, ...]
    seconds: Fraction
    memory: int
    imports: tuple[str, ...]

    @classmethod
    def of(
        cls,
        function: Callable[..., Any] | str,
        table: str,
        columns: Sequence[str],
        *,
        bounds: Sequence[Any],
        blocks: int = 64,
        how: How = "median",
        default: Number | Sequence[Number] | None = None,
        seconds: Number = Fraction(1, 2),
        memory: int = 1024,
        imports: Sequence[str] = (),
    ) -> "AggregateRequest":
        """Validate the arguments."""
        ends = _bounds(bounds)
        if how not in ("median", "mean"):
            raise ParameterError("HB193", f"Unknown aggregate {how!r}.", "Use 'median' or 'mean'.")
        middle = tuple((low + high) / 2 for low, high in ends)
        given = middle if default is None else _numbers(default, "default")
        if len(given) != len(ends) or not all(
            low <= each <= high for each, (low, high) in zip(given, ends, strict=True)
        ):
            raise ParameterError(
                "HB193", "The default is not within the bounds.", "Pass one number within each pair of bounds."
            )
        if isinstance(columns, str) or not columns:
            raise ParameterError("HB193", "No columns were given.", "Pass a list with at least one column.")
        return cls(
            Code.of(function),
            table,
            tuple(columns),
            ends,
            numbers.integer(blocks, "blocks", 2, 10_000),
            how,
            given,
            numbers.in_range(seconds, "seconds", Fraction(1, 20), Fraction(600)),
            numbers.integer(memory, "memory", 256, 1 << 20),
            tuple(imports),
        )

    @property
    def text(self) -> str:
        """The call as the ledger records it, with the hash of the function's code."""
        arguments = {
            "table": self.table,
            "columns": list(self.columns),
            "function": self.code.name,
            "code": self.code.hash,
            "bounds": [[str(end) for end in pair] for pair in self.bounds],
            "blocks": self.blocks,
            "how": self.how,
            "default": [str(each) for each in self.default],
            "seconds": str(self.seconds),
            "memory": self.memory,
            "imports": list(self.imports),
        }
        return AnalysisCall("sample_and_aggregate", arguments).text()

    def sandbox(self) -> Sandbox:
        """Start the sandbox for the function, or refuse if this machine cannot isolate it."""
        return Sandbox(
            self.code, outputs=len(self.bounds), seconds=float(self.seconds), memory=self.memory, imports=self.imports
        )

    def prepare(self, setting: Setting, sandbox: Sandbox | None) -> "SampleAndAggregate":
        """Prepare the release and its privacy cost; without a sandbox it can be estimated but not run."""
        table = setting.table(self.table)
        columns = tuple(column(table, name, "columns") for name in self.columns)
        rows, outputs = Rows(table, columns, setting.render_options), len(self.bounds)
        mean, medians = None, tuple[Exponential | PermuteAndFlip, ...]()
        if self.how == "mean":
            mean = Laplace.from_epsilon(sensitivity=outputs * _STEPS, epsilon=setting.epsilon)
            event, noise = Composed(((mean.event, 1),)), "laplace"
            expected = tuple(Expected("value", width, None, 0.0) for width in self.half_widths(mean))
        else:
            medians = tuple(
                selection_rule(setting.delta).from_epsilon(
                    candidates=_CANDIDATES, sensitivity=2, monotone=False, relation=table.relation, epsilon=part
                )
                for part in portions(setting.epsilon, [1.0] * outputs)
            )
            event, noise = Composed(tuple((each.event, 1) for each in medians)), RULES[medians[0].rule]
            half = float(medians[0].error(LEVEL)) / 2
            expected = (Expected("value", half, self.blocks, half / self.blocks, "rank"),)
        whose = "each row" if table.unit is None or table.unit.column is None else "each unit, with all its rows,"
        return SampleAndAggregate(
            protection=Protection((table,), table.relation, None),
            epsilon=setting.epsilon,
            delta=Fraction(0),
            event=event,
            noise=noise,
            derivation=(
                f"{whose} is put into one of {self.blocks} blocks at random; rows are read into the curator's memory",
                f"{self.code.name} ({self.code.hash[:12]}…) runs on each block ({numbers.brief(self.seconds)} s)",
                f"its answers are clamped, so one unit moves one of them within its bounds ({self.how})",
                f"{noise} costs ε = {setting.epsilon}",
            ),
            expected=expected,
            order=self,
            rows=rows,
            sandbox=sandbox,
            mean=mean,
            medians=medians,
        )

    def half_widths(self, mean: Laplace) -> list[float]:
        """Give the ± of each number of a noisy mean."""
        share = mean.error(LEVEL) / (self.blocks * _STEPS)
        return [float(share * (high - low)) for low, high in self.bounds]


@dataclass(frozen=True, kw_only=True)
class SampleAndAggregate(PreparedAnalysis):
    """A private mean or median of a function's answers on blocks.

    Theorem (Sample and aggregate). Put each unit, with all its rows, into one of k blocks at random, run any function
    on each block by itself, and clamp its answers to [a, b]. Then neighbors can be coupled so that all answers but
    one are the same, and that one stays in [a, b]; so the sum of the answers with Laplace noise for a sensitivity of
    b − a costs ε, and so does their median by a selection with score −|below − above|, which moves by at
    most 2. This holds for add/remove and for replace. (Nissim, Raskhodnikova and Smith 2007.)
    Proof    Put each unit of both datasets into the same block in both, and a replacing unit into the block of the unit
             that it replaces: blocks are sampled independently and uniformly, so both datasets get the right
             distribution. All blocks but one then hold the same rows, sorted by their values, so the function's answers
             on them have the same distribution and can be coupled. Given these, the mechanism's guarantee holds for one
             changed answer, and an average over couplings preserves it.
    Assumes  a block's answer depends on that block alone (`Sandbox`); nothing else is known about the function.
    Charges  Pure(ε).
    Error    `expected` bounds the error of the noise, not the spread of the function's answers over the blocks.
    Tested   tests/analyses/functions/test_sample_and_aggregate.py::test_one_unit_changes_the_rows_of_one_block
             tests/analyses/functions/test_sample_and_aggregate.py::test_enumerated_loss_of_a_changed_answer_is_the_charged_one
             tests/analyses/functions/test_sample_and_aggregate.py::test_a_function_that_fails_on_some_blocks_is_answered_all_the_same
    """

    order: AggregateRequest
    rows: Rows
    sandbox: Sandbox | None
    mean: Laplace | None
    medians: tuple[Exponential | PermuteAndFlip, ...]

    def run(self, run: Run) -> Published:
        """Read the rows, run the function on each block, and aggregate its answers."""
        sandbox = self.sandbox
        if sandbox is None:
            raise RunError
        secret = run.ask(self.rows.sql)
        return secret.through(lambda found: self._aggregate(self._answers(found, sandbox, run), run.source))

    def _answers(self, found: Arrays, sandbox: Sandbox, run: Run) -> Numbers:
        blocks = self.split(found, run.source)
        answers = np.empty((len(self.order.bounds), self.order.blocks), dtype=np.int64)
        for i, rows in enumerate(blocks):
            run.progress(i / self.order.blocks, f"block {i + 1} of {self.order.blocks}")
            answers[:, i] = self.steps(sandbox.run(rows))
        return answers

    def split(self, found: Arrays, source: RandomSource) -> list[Mapping[str, NDArray[Any]]]:
        """Put each unit into a block, and sort the rows of each block by their values."""
        taken = self.rows.take(found).ordered()
        units = np.arange(taken.size) if taken.owners is None else taken.owners
        count = int(units.max()) + 1 if len(units) else 0
        blocks = uniform_below(bound=self.order.blocks, count=count, source=source)[units]
        return [taken.only(blocks == block) for block in range(self.order.blocks)]

    def steps(self, answer: tuple[float, ...] | None) -> Numbers:
        """Clamp an answer, or the default if there is none, to its bounds and convert it to integer steps."""
        given = [float(each) for each in self.order.default] if answer is None else answer
        low, high = (np.array([float(pair[end]) for pair in self.order.bounds]) for end in (0, 1))
        share = (np.clip(np.array(given), low, high) - low) / (high - low)
        whole: Numbers = np.clip(np.rint(share * _STEPS), 0, _STEPS).astype(np.int64)
        return whole

    def _aggregate(self, answers: Numbers, source: RandomSource) -> Published:
        if self.mean is not None:
            noisy = self.mean.sample(answers.sum(axis=1), source)
            shares = [float(Fraction(int(each), self.order.blocks * _STEPS)) for each in noisy]
            return self._published(shares, self.order.half_widths(self.mean))
        chosen = [
            median.sample(scores(row), source) / (_CANDIDATES - 1)
            for median, row in zip(self.medians, answers, strict=True)
        ]
        return self._published(chosen, None)

    def _published(self, shares: Sequence[float], widths: Sequence[float] | None) -> Published:
        ends = [(float(low), float(high)) for low, high in self.order.bounds]
        raw = [low + share * (high - low) for share, (low, high) in zip(shares, ends, strict=True)]
        values = [min(max(value, low), high) for value, (low, high) in zip(raw, ends, strict=True)]
        sides: tuple[list[float] | None, list[float] | None] = (None, None)
        if widths is not None:
            pairs = list(zip(raw, widths, strict=True))
            sides = [value - width for value, width in pairs], [value + width for value, width in pairs]
        value = Output("value", "real", values, *sides)
        places = Output("place", "integer", list(range(len(values))))
        return Published((value,) if len(values) == 1 else (places, value))


def scores(answers: Numbers) -> Numbers:
    """Score each candidate for the median: minus the difference of the numbers of answers on its two sides.

    >>> found = scores(np.array([0, 0, _STEPS // 2, _STEPS, _STEPS]))
    >>> int(found[512]), int(found[0]), int(np.argmax(found))
    (0, -3, 512)
    """
    ordered = np.sort(answers)
    candidates = np.arange(_CANDIDATES) * (_STEPS // (_CANDIDATES - 1))
    below = np.searchsorted(ordered, candidates, side="left")
    above = len(ordered) - np.searchsorted(ordered, candidates, side="right")
    lopsided: Numbers = np.abs(below - above).astype(np.int64)
    return -lopsided


def _bounds(bounds: Sequence[Any]) -> tuple[Ends, ...]:
    pairs = [bounds] if len(bounds) == 2 and not isinstance(bounds[0], Sequence) else list(bounds)
    checked = []
    for pair in pairs:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise ParameterError(
                "HB193", "bounds must be pairs of numbers.", "Pass (low, high), or a list with one pair per number."
            )
        low, high = (numbers.exact(end, "bounds") for end in pair)
        if not low < high:
            raise ParameterError(
                "HB193", "The bounds are not in increasing order.", "Pass (low, high) with low < high."
            )
        checked.append((low, high))
    if not 1 <= len(checked) <= 100:
        raise ParameterError("HB193", "An answer must have 1 to 100 numbers.", "Pass one pair of bounds per number.")
    return tuple(checked)


def _numbers(value: Number | Sequence[Number], name: str) -> tuple[Fraction, ...]:
    several = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    return tuple(numbers.exact(each, name) for each in several)
