"""Estimates: the privacy cost and the expected accuracy of a query, before it is charged."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, Literal, Self

from hubbub.answers.budget import MANY
from hubbub.answers.derived import named
from hubbub.answers.groups import GroupThreshold
from hubbub.answers.left_out import LeftOut
from hubbub.core.numbers import brief, round_down
from hubbub.core.odds import uninformative
from hubbub.core.wire import Json

#: The size of a typical group, for which errors are compared with results before the data is read.
TYPICAL_ROWS = 1000
#: The error of a value, or of a rank, as a share of its magnitude, from which on the answer says next to nothing.
_DROWNED, _DROWNED_RANK = 1.0, 0.5
_LESS_NOISE = "Ask for fewer groups or a larger ε."
#: The cost of a query on public tables, whose ε is 0.
PUBLIC = "free: the query reads only public tables, so the answer is exact"
#: The cost of a query for the public number of rows.
ROWS_PUBLIC = "free: the number of rows is public under the replace relation, so the answer is exact"


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected margin of error of one aggregate, for a group of `rows` rows (None: any group).

    `unit` is "value", or "rank" where the error of a quantile or extreme is a number of rows in sorted order.
    `relative` compares the error with `magnitude`; `low` and `high` are the range of the result, if both are known.
    """

    name: str
    plus_minus: float
    rows: int | None
    relative: float
    unit: Literal["value", "rank"] = "value"
    low: float | None = None
    high: float | None = None

    def magnitude(self) -> str:
        """Describe what a percentage is of.

        >>> Expected("n", 30.0, None, 0.03).magnitude(), Expected("a", 1.0, 1000, 0.02, "value", 0.0, 100.0).magnitude()
        ('1,000, the most in a group of 1,000 rows', '50, the scale that the column bounds give')
        """
        if self.unit == "rank":
            return f"the ranks in a group of {TYPICAL_ROWS:,} rows"
        scale = significant(self.plus_minus / self.relative) if self.relative else "an unknown scale"
        if self.rows is None:
            return f"{scale}, the most in a group of {TYPICAL_ROWS:,} rows"
        return f"{scale}, the scale that the column bounds give"

    def drowned(self, group_rows: int | None = None) -> str:
        """Warn if the noise is as large as the result can be; empty if it is not.

        `group_rows` is the size of an average group, if it is known; else a typical group is taken.

        >>> Expected("a", 300.0, 1000, 2.0, "value", 0.0, 300.0).drowned()
        'a: ±300 on values of 0 to 300 is mostly noise. Ask for fewer groups or a larger ε.'
        >>> Expected("n", 300.0, None, 0.3).drowned()
        ''
        >>> Expected("n", 300.0, None, 0.3).drowned(300)
        'n: ±300 is mostly noise: an average group of 300 rows gives at most 300. Ask for fewer groups or a larger ε.'
        """
        rows = max(1, TYPICAL_ROWS if group_rows is None else group_rows)
        smaller = TYPICAL_ROWS / rows
        if self.relative * smaller < (_DROWNED_RANK if self.unit == "rank" else _DROWNED):
            return ""
        group = f"{'a' if group_rows is None else 'an average'} group of {rows:,} row{'' if rows == 1 else 's'}"
        if self.low is not None and self.high is not None:
            error = min(self.plus_minus * smaller, self.high - self.low)
            where = f" in {group}" if group_rows is not None else ""
            values = f"{significant(self.low)} to {significant(self.high)}"
            return f"{self.name}: ±{significant(error)} on values of {values}{where} is mostly noise. {_LESS_NOISE}"
        noise = f"{self.name}: {margin(replace(self, rows=None))}"
        if self.unit == "rank":
            return f"{noise} in {group} is mostly noise. {_LESS_NOISE}"
        most = significant(self.plus_minus / self.relative / smaller)
        return f"{noise} is mostly noise: {group} gives at most {most}. {_LESS_NOISE}"


@dataclass(frozen=True, slots=True)
class FreeAnswer:
    """What earlier releases tell about a query for free.

    releases  the numbers of the charges that paid for them
    expected  the margins of error of the outputs
    exact     whether it is about the same rows; else each unit counts with at least as many
    enough    whether all of them are at most those that the requested price would buy: the query is then free
    combined  a lower price at which they are as exact together with a new release; None if there is none
    """

    releases: tuple[int, ...]
    expected: tuple[Expected, ...]
    enough: bool
    exact: bool = True
    combined: Fraction | None = None

    def sentence(self) -> str:
        """State what is free, and from which releases."""
        several = len(self.expected) > 1
        errors = [f"{each.name} {margin(each)}" if several else margin(each) for each in self.expected]
        more = "" if self.exact else ", with at least as many rows of each privacy unit"
        return f"free: {', '.join(errors)} from {named(self.releases)}{more}"

    def to_json(self) -> Json:
        """Return it as JSON values."""
        return {
            "releases": list(self.releases),
            "expected": [asdict(each) for each in self.expected],
            "enough": self.enough,
            "exact": self.exact,
            "combined": None if self.combined is None else str(self.combined),
            "text": self.sentence(),
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        expected, combined = tuple(Expected(**each) for each in form["expected"]), form.get("combined")
        price = None if combined is None else Fraction(combined)
        return cls(tuple(form["releases"]), expected, form["enough"], form["exact"], price)


@dataclass(frozen=True)
class Estimate:
    """An estimate, which is free and does not depend on the data.

    admitted   whether the query is within budget now; `largest` is the largest ε within budget
    scaling    (ε, expected errors) at other values of ε around the requested one
    left_out   what the bounds of the query leave out
    target     what a relative margin of error (`within="5%"`) was taken of; empty if none was requested
    groups     how many privacy units a group needs to be shown, if groups are selected privately
    fits       how many such queries are within budget now; None if shared budgets are rounded or hidden
    refusal    why the query is not within budget, and what to do; empty if it is
    group_rows the number of rows in an average group, if the dataset has a profile
    units      the number of privacy units, if it is public or the dataset has a profile
    intervals  what the margins of error state, where they hold for the whole answer at once; empty: each at 95%
    free       what earlier releases tell for free; None if they do not determine the answer
    choice     why another noise than that with the least ε was chosen; empty if it was not
    work       what the engine is expected to take: memory, time and parts, or that this is not predicted
    review     who must approve the answer before it is shown; empty if nobody must
    disclosure what the data owner's rules for small numbers and rounding do; empty if there are none
    never_equal  which constants a column never equals, because they are not among its declared values
    sandbox    that the query is asked in the sandbox, which charges nothing; empty if it is not
    """

    datasets: tuple[str, ...]
    epsilon: Fraction
    delta: Fraction
    noise: str
    cells: int
    expected: tuple[Expected, ...]
    derivation: tuple[str, ...]
    admitted: bool
    largest: Fraction
    scaling: tuple[tuple[Fraction, tuple[Expected, ...]], ...]
    sql: tuple[str, ...]
    left_out: LeftOut | None = None
    target: str = ""
    groups: GroupThreshold | None = None
    fits: int | None = None
    refusal: str = ""
    group_rows: int | None = None
    units: int | None = None
    intervals: str = ""
    free: FreeAnswer | None = None
    choice: str = ""
    work: str = ""
    review: str = ""
    sandbox: str = ""
    disclosure: str = ""
    never_equal: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warn of misspelled values, results that are mostly noise, groups too small to show, and an ε too small."""
        groups = [] if self.groups is None else [self.groups.warning()]
        noisy = [each.drowned(self.group_rows) for each in self.expected]
        return tuple(warning for warning in (*self.never_equal, self._uninformative(), *groups, *noisy) if warning)

    def _uninformative(self) -> str:
        if not self.units or self.units < 0 or not self.epsilon:
            return ""
        return uninformative(epsilon=self.epsilon, delta=self.delta, people=self.units, word="privacy units")

    def to_json(self) -> Json:
        """Return it as JSON values; exact numbers are strings."""
        return {
            "datasets": list(self.datasets),
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "noise": self.noise,
            "cells": self.cells,
            "admitted": self.admitted,
            "largest_epsilon": str(self.largest),
            "expected": [asdict(each) for each in self.expected],
            "scaling": [
                {"epsilon": str(epsilon), "expected": [asdict(each) for each in expected]}
                for epsilon, expected in self.scaling
            ],
            "derivation": list(self.derivation),
            "sql": list(self.sql),
            "left_out": None if self.left_out is None else self.left_out.shown(),
            "target": self.target,
            "groups": None if self.groups is None else self.groups.to_json(),
            "fits": self.fits,
            "refusal": self.refusal,
            "group_rows": self.group_rows,
            "intervals": self.intervals,
            "units": self.units,
            "choice": self.choice,
            "work": self.work,
            "review": self.review,
            "disclosure": self.disclosure,
            "never_equal": list(self.never_equal),
            "warnings": list(self.warnings),
            "free": None if self.free is None else self.free.to_json(),
        } | ({"sandbox": self.sandbox} if self.sandbox else {})

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        return cls(
            datasets=tuple(form["datasets"]),
            epsilon=Fraction(form["epsilon"]),
            delta=Fraction(form["delta"]),
            noise=form["noise"],
            cells=form["cells"],
            expected=_expected(form),
            derivation=tuple(form["derivation"]),
            admitted=form["admitted"],
            largest=Fraction(form["largest_epsilon"]),
            scaling=tuple((Fraction(each["epsilon"]), _expected(each)) for each in form["scaling"]),
            sql=tuple(form["sql"]),
            left_out=None if form.get("left_out") is None else LeftOut.from_json(form["left_out"]),
            target=form.get("target", ""),
            groups=None if form.get("groups") is None else GroupThreshold.from_json(form["groups"]),
            fits=form.get("fits"),
            refusal=form.get("refusal", ""),
            group_rows=form.get("group_rows"),
            intervals=form.get("intervals", ""),
            units=form.get("units"),
            free=None if form.get("free") is None else FreeAnswer.from_json(form["free"]),
            choice=form.get("choice", ""),
            work=form.get("work", ""),
            review=form.get("review", ""),
            sandbox=form.get("sandbox", ""),
            disclosure=form.get("disclosure", ""),
            never_equal=tuple(form.get("never_equal", ())),
        )

    def __repr__(self) -> str:
        if not self.epsilon:
            return "\n".join([*([self.sandbox] if self.sandbox else []), f"Cost: {self.derivation[0]}"])
        cost = f"ε = {brief(self.epsilon)}" + (f", δ = {brief(self.delta)}" if self.delta else "")
        lines = [self.sandbox] if self.sandbox else []
        lines += [f"Cost: {cost} on {', '.join(self.datasets)}; nothing was run or charged"]
        lines += [f"  {self.cells:,} groups"] if self.cells > 1 else []
        lines += [f"  {expected.name} {margin(expected)}" for expected in self.expected]
        lines += [f"  {self.choice}"] if self.choice else []
        lines += [f"  {self.offer()}"] if self.free is not None else []
        lines += [f"  {self.intervals}"] if self.intervals else []
        lines += [f"  target: {self.target}"] if self.target else []
        lines += [f"  {self.groups.sentence()}"] if self.groups is not None else []
        lines += [f"  warning: {warning}" for warning in self.warnings]
        if self.left_out is not None:
            lines.append(f"  {self.left_out.sentence()}")
        lines += [f"  work: {self.work}"] if self.work.startswith("about") else []
        lines += [f"  {self.disclosure}"] if self.disclosure else []
        lines += [f"  {self.review}"] if self.review else []
        lines.append(f"  {self.budget()}")
        return "\n".join(lines)

    def offer(self) -> str:
        """Compare what earlier releases tell for free with what the price buys; empty if they tell nothing."""
        if self.free is None:
            return ""
        if self.free.enough:
            return f"{self.free.sentence()}: a query at this price costs nothing"
        errors = ", ".join(f"{each.name} {margin(each)}" for each in self.expected)
        text = f"{self.free.sentence()} (ask without a price); or ε = {brief(self.epsilon)} for {errors}"
        if self.free.combined is None:
            return text
        return f"{text}; or pay ε = {brief(self.free.combined)} and combine both (combine=True): {errors}"

    def budget(self) -> str:
        """Say whether the query is within budget, how often, or why it is not."""
        if self.sandbox:
            return "not charged in the sandbox; estimate it without the sandbox to see what is left"
        if not self.admitted:
            return f"over budget: {self.refusal.removeprefix('Not enough budget: ') or self._largest()}"
        count = "" if self.fits is None else f" for {'more than ' * (self.fits >= MANY)}{self.fits:,} such queries"
        return f"within budget{count}; {self._largest()}"

    def _largest(self) -> str:
        return f"the largest query possible now costs ε = {round_down(self.largest)}"


def _expected(form: Mapping[str, Any]) -> tuple[Expected, ...]:
    return tuple(Expected(**each) for each in form["expected"])


def describe_target(within: str, expected: Sequence[Expected]) -> str:
    """Say what a relative margin of error was taken of.

    >>> describe_target("5%", [Expected("n", 30.0, None, 0.03), Expected("m", 20.0, None, 0.02, "rank")])
    'n: 5% of 1,000, the most in a group of 1,000 rows; m: 5% of the ranks in a group of 1,000 rows'
    """
    return "; ".join(f"{each.name}: {within} of {each.magnitude()}" for each in expected)


def margin(expected: Expected) -> str:
    """Format an expected error.

    >>> margin(Expected("n", 30.0, None, 0.1)), margin(Expected("a", 1.25, 1000, 0.1))
    ('±30', '±1.2 (in a group of 1,000 rows)')
    """
    group = "" if expected.rows is None else f" (in a group of {expected.rows:,} rows)"
    rank = " rows off in rank" if expected.unit == "rank" else ""
    return f"±{significant(expected.plus_minus)}{rank}{group}"


def significant(value: float) -> str:
    """Format an error with two significant digits, or as a whole number from 10 on."""
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.2g}"
