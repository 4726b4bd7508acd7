"""Sample and aggregate: a stranger's function on blocks of rows, its answers clamped, and a private mean or median.

The function is untrusted: it runs in a sandbox (`hubbub.analyses.functions.sandbox`), once for each block.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.base import Arrays, Published, Run, Setting
from hubbub.analyses.functions.sandbox import Code, Sandbox
from hubbub.analyses.rows import Rows, column
from hubbub.answers.estimate import Expected
from hubbub.answers.release import Output
from hubbub.core import numbers
from hubbub.core.call import Call
from hubbub.core.events import Composed, Event
from hubbub.core.numbers import Number
from hubbub.core.schema import Table
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError, RunError
from hubbub.mechanisms.exponential import Exponential
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import Source
from hubbub.noise.uniform import uniform_below
from hubbub.sql.bounding import Limits
from hubbub.sql.split import portions

LEVEL = Fraction(95, 100)
How = Literal["median", "mean"]

#: A clamped answer is one of so many steps; a median one of so many candidates.
_STEPS = 1 << 16
_CANDIDATES = 1025

Numbers = NDArray[np.int64]
Ends = tuple[Fraction, Fraction]


class AggregateOptions(TypedDict, total=False):
    """What may be said about a sample-and-aggregate: see `AggregateRequest`."""

    blocks: int
    how: How
    default: Number | Sequence[Number] | None
    seconds: Number
    memory: int
    imports: Sequence[str]


@dataclass(frozen=True)
class AggregateRequest:
    """What is asked for: a function, on which rows, in how many blocks, what is made of its answers. Checked, no data.

    function  a `def` that stands by itself, or a text that defines f(rows); rows are numpy arrays by column
    bounds    the ends that its answer, or each number of it, is clamped into
    default   what stands for an answer where there is none: by default the middle of the bounds
    seconds   the time of each block, used up whatever the function does; blocks run one after the other
    memory    megabytes for each block
    imports   libraries to load beforehand: later nothing can be opened
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
        """Check what was said."""
        ends = _bounds(bounds)
        if how not in ("median", "mean"):
            raise ParameterError("HB193", f"{how!r} is not how answers are put together.", "Say 'median' or 'mean'.")
        middle = tuple((low + high) / 2 for low, high in ends)
        given = middle if default is None else _numbers(default, "default")
        if len(given) != len(ends) or not all(
            low <= each <= high for each, (low, high) in zip(given, ends, strict=True)
        ):
            raise ParameterError("HB193", "the default does not lie in the bounds.", "Give one number for each.")
        if isinstance(columns, str) or not columns:
            raise ParameterError("HB193", "it is not said which columns the function sees.", "Name at least one.")
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
        """The text of the call, as it stands in the ledger; the function is named by its hash."""
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
        return Call("sample_and_aggregate", arguments).text()

    def box(self) -> Sandbox:
        """Start the process that runs the function, or refuse where it cannot be shut in."""
        return Sandbox(
            self.code, outputs=len(self.bounds), seconds=float(self.seconds), memory=self.memory, imports=self.imports
        )

    def prepare(self, setting: Setting, box: Sandbox | None) -> "Aggregated":
        """Price it; without a box it can be estimated, not run."""
        table = setting.table(self.table)
        columns = tuple(column(table, name, "columns") for name in self.columns)
        rows, outputs = Rows(table, columns, setting.words), len(self.bounds)
        if self.how == "mean":
            mean = Laplace.from_epsilon(sensitivity=outputs * _STEPS, epsilon=setting.epsilon)
            return Aggregated(self, rows, setting.epsilon, box, mean, ())
        medians = tuple(
            Exponential.from_epsilon(
                candidates=_CANDIDATES, sensitivity=2, monotone=False, relation=table.relation, epsilon=part
            )
            for part in portions(setting.epsilon, [1.0] * outputs)
        )
        return Aggregated(self, rows, setting.epsilon, box, None, medians)


@dataclass(frozen=True)
class Aggregated:
    """A priced aggregate of a function's answers on blocks.

    Theorem (Sample and aggregate). Put each unit, with all its rows, into one of k blocks at random, run any function
    on each block by itself, and clamp its answers into [a, b]. Then neighbors can be paired so that all answers but
    one are the same, and that one stays in [a, b]; so the sum of the answers with Laplace noise for a sensitivity of
    b − a costs ε, and so does their median by the exponential mechanism with score −|below − above|, which moves by at
    most 2. This holds for add/remove and for replace. (Nissim, Raskhodnikova and Smith 2007.)
    Proof    Give each unit that both datasets have the same block in both, and a unit that takes another's place that
             one's block: blocks are drawn independently and uniformly, so both datasets get the law that they should.
             All blocks but one then hold the same rows, which the function sees in the order of their values, so its
             answers on them have one law and can be made the same. Given these, the mechanism's promise holds for one
             changed answer; an average over how things were paired keeps it.
    Assumes  a block's answer depends on that block alone (`Sandbox`); nothing else is known about the function.
    Charges  Pure(ε).
    Error    `expected` bounds that of the noise; how the answers scatter about what is wanted is the function's affair.
    Tested   tests/analyses/functions/test_sample_and_aggregate.py::test_one_unit_changes_the_rows_of_one_block
             tests/analyses/functions/test_sample_and_aggregate.py::test_enumerated_loss_of_a_changed_answer_is_the_charged_one
             tests/analyses/functions/test_sample_and_aggregate.py::test_a_function_that_fails_on_some_blocks_is_answered_all_the_same
    """

    order: AggregateRequest
    rows: Rows
    epsilon: Fraction
    box: Sandbox | None
    mean: Laplace | None
    medians: tuple[Exponential, ...]

    @property
    def tables(self) -> tuple[Table, ...]:
        """The table that is read."""
        return (self.rows.table,)

    @property
    def delta(self) -> Fraction:
        """None is used."""
        return Fraction(0)

    @property
    def event(self) -> Event:
        """One vector with noise, or one choice for each number."""
        if self.mean is not None:
            return Composed(((self.mean.event, 1),))
        return Composed(tuple((each.event, 1) for each in self.medians))

    @property
    def relation(self) -> Relation:
        """What neighbors are."""
        return self.rows.table.relation

    @property
    def limits(self) -> Limits | None:
        """All rows of a unit go into one block, so none has to be left out."""
        return None

    @property
    def noise(self) -> str:
        """The kind of noise."""
        return "laplace" if self.mean is not None else "exponential mechanism"

    @property
    def derivation(self) -> tuple[str, ...]:
        """From blocks to noise."""
        order = self.order
        unit = self.rows.table.unit
        whose = "each row" if unit is None or unit.column is None else "each unit, with all its rows,"
        return (
            f"{whose} is put into one of {order.blocks} blocks at random; rows are read into the curator's memory",
            f"{order.code.name} ({order.code.hash[:12]}…) runs on each block ({numbers.brief(order.seconds)} s)",
            f"its answers are clamped, so one unit moves one of them within its bounds ({order.how})",
            f"{self.noise} costs ε = {self.epsilon}",
        )

    @property
    def expected(self) -> tuple[Expected, ...]:
        """What the noise does to each number."""
        if self.mean is None:
            half = float(self.medians[0].error(LEVEL)) / 2
            return (Expected("value", half, self.order.blocks, half / self.order.blocks, "rank"),)
        return tuple(Expected("value", width, None, 0.0) for width in self._widths(self.mean))

    def run(self, run: Run) -> Published:
        """Read the rows, run the function on each block, put its answers together."""
        box = self.box
        if box is None:
            raise RunError
        secret = run.ask(self.rows.sql)
        return secret.through(lambda found: self._aggregate(self._answers(found, box, run), run.source))

    def _answers(self, found: Arrays, box: Sandbox, run: Run) -> Numbers:
        blocks = self.split(found, run.source)
        answers = np.empty((len(self.order.bounds), self.order.blocks), dtype=np.int64)
        for place, rows in enumerate(blocks):
            run.progress(place / self.order.blocks, f"block {place + 1} of {self.order.blocks}")
            answers[:, place] = self.steps(box.run(rows))
        return answers

    def split(self, found: Arrays, source: Source) -> list[Mapping[str, NDArray[Any]]]:
        """Put each unit into a block, and the rows of each block in the order of their values."""
        taken = self.rows.take(found).ordered()
        units = np.arange(taken.size) if taken.owners is None else taken.owners
        count = int(units.max()) + 1 if len(units) else 0
        place = uniform_below(bound=self.order.blocks, count=count, source=source)[units]
        return [taken.only(place == block) for block in range(self.order.blocks)]

    def steps(self, answer: tuple[float, ...] | None) -> Numbers:
        """Clamp an answer into its bounds, in whole steps; where there is none, the default."""
        given = [float(each) for each in self.order.default] if answer is None else answer
        low, high = (np.array([float(pair[end]) for pair in self.order.bounds]) for end in (0, 1))
        share = (np.clip(np.array(given), low, high) - low) / (high - low)
        whole: Numbers = np.clip(np.rint(share * _STEPS), 0, _STEPS).astype(np.int64)
        return whole

    def _aggregate(self, answers: Numbers, source: Source) -> Published:
        if self.mean is not None:
            noisy = self.mean.sample(answers.sum(axis=1), source)
            shares = [float(Fraction(int(each), self.order.blocks * _STEPS)) for each in noisy]
            return self._published(shares, self._widths(self.mean))
        chosen = [
            median.sample(scores(row), source) / (_CANDIDATES - 1)
            for median, row in zip(self.medians, answers, strict=True)
        ]
        return self._published(chosen, None)

    def _widths(self, mean: Laplace) -> list[float]:
        share = mean.error(LEVEL) / (self.order.blocks * _STEPS)
        return [float(share * (high - low)) for low, high in self.order.bounds]

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
    """Score each candidate for the median: minus how many more answers lie on one side of it than on the other.

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
    found = []
    for pair in pairs:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise ParameterError(
                "HB193", "bounds are pairs of numbers.", "Give (low, high), or one such pair a number."
            )
        low, high = (numbers.exact(end, "bounds") for end in pair)
        if not low < high:
            raise ParameterError("HB193", "the bounds of an answer do not rise.", "Give (low, high), low < high.")
        found.append((low, high))
    if not 1 <= len(found) <= 100:
        raise ParameterError("HB193", "an answer has from 1 to 100 numbers.", "Give a pair of bounds for each.")
    return tuple(found)


def _numbers(value: Number | Sequence[Number], name: str) -> tuple[Fraction, ...]:
    several = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    return tuple(numbers.exact(each, name) for each in several)
