"""A query with its options, checked before anything is planned.

Tested in tests/curator/test_path.py.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TypedDict, get_args

from hubbub.analyses.base import PreparedAnalysis, Setting
from hubbub.answers.options import exact_parameter
from hubbub.core import call, numbers
from hubbub.core.asked import once
from hubbub.core.numbers import Number
from hubbub.core.schema import Value
from hubbub.errors import ParameterError
from hubbub.sql.expressions import Col
from hubbub.sql.generate import duckdb_sql
from hubbub.sql.noise import Noise
from hubbub.sql.parse import parse
from hubbub.sql.query import Query
from hubbub.sql.spellings import is_ambiguous

#: The share of the caps' δ that a query takes by default to select groups. It is at most a hundredth of what is left
#: of the half that privacy filters reserve for such failures, until nine tenths of that half are spent. It depends on
#: the caps alone, not on what is left, so that the same query has the same event and is answered again for free.
GROUPS_SHARE = Fraction(1, 1000)


class PlannerOptions(TypedDict):
    """The options of the planner besides the privacy cost."""

    groups: int | None
    rows: int | None
    weights: Mapping[str, Fraction]
    joint: bool


@dataclass(frozen=True, slots=True)
class Question:
    """One query or CALL.

    epsilon        the privacy cost; or
    within         the target margin of error: a number in the units of the results; or "5%", of a group of 1,000 rows
                   for counts, sums and ranks, and of the scale that the column bounds give for other aggregates
    delta          the δ that Gaussian noise and partition selection may use: 0 for none; None for that of the budget,
                   or for a thousandth of it if the query selects groups
    parameters     the values of $1, $2, …
    groups, rows   tighter contribution bounds than the owner's: less noise, where units contribute less
    weights        relative importance of the accuracy of outputs
    raw            do not clamp estimates: negative counts, averages outside their bounds
    combine        pay less where earlier releases and a new one together are as exact as the price or target asks
    free           answer only from earlier releases, however exact that is, and charge nothing
    intervals      "each" interval holds with 95%, or all of the answer at once ("joint"); computed from the same noise
    noise          "laplace" or "gaussian"; None: of the smaller error, or of the least cost for a margin of error
    user_function  prepares an analysis of user-defined code; text and requests cannot carry it
    """

    sql: str
    _: KW_ONLY
    epsilon: Number | None = None
    within: Number | None = None
    delta: Number | None = None
    parameters: Sequence[Value | float | Decimal] = ()
    groups: int | None = None
    rows: int | None = None
    weights: Mapping[str, Number] | None = None
    raw: bool = False
    dialect: str = "duckdb"
    intervals: str = "each"
    combine: bool = False
    free: bool = False
    noise: Noise | None = None
    user_function: Callable[[Setting], PreparedAnalysis] | None = None

    @property
    def joint(self) -> bool:
        """Whether all intervals of the answer shall hold at once."""
        if self.intervals not in ("each", "joint"):
            raise ParameterError(
                "HB584",
                f"{str(self.intervals)[:40]!r} is not a kind of intervals.",
                "Use 'each' for intervals that hold one by one, or 'joint' for all of them at once.",
            )
        return self.intervals == "joint"

    @property
    def priced(self) -> bool:
        """Whether there is a price or a target; calls say so themselves where they lack one."""
        return self.epsilon is not None or self.within is not None or call.is_call(self.sql)

    @property
    def only_free(self) -> bool:
        """Whether the answer may cost nothing: `free` says so, or there is neither a price nor a target."""
        return self.free or not self.priced

    def planned(self) -> "Question":
        """Give the question that is planned: one without a price is planned at some price, which is never charged."""
        return self if self.priced else replace(self, epsilon=Fraction(1))

    def not_free(self) -> ParameterError:
        """Give the error of a question that may cost nothing and is not determined by earlier releases."""
        return not_free() if self.free else _unpriced()

    def values(self) -> tuple[Value, ...]:
        """Give the exact values of the parameters."""
        return tuple(map(exact_parameter, self.parameters))

    def wants_accuracy(self) -> bool:
        """Return whether `within` is given instead of `epsilon`; exactly one must be."""
        if (self.epsilon is None) == (self.within is None):
            raise _unpriced()
        return self.epsilon is None

    def requested_epsilon(self) -> Fraction:
        """Give the requested ε."""
        return numbers.epsilon(0 if self.epsilon is None else self.epsilon)

    def planner_options(self, query: Query) -> PlannerOptions:
        """Give the planner's other options; weights are given by the names of outputs."""
        aggregates = {aggregate.name for aggregate in query.aggregates}
        names = {name: e.name for name, e in query.select if isinstance(e, Col) and e.name in aggregates}
        weights = {}
        for name, weight in (self.weights or {}).items():
            if name not in names:
                known = ", ".join(names) or "none"
                raise ParameterError(
                    "HB138", f"weights names {name!r}, which is not a noisy output.", f"Choose from: {known}."
                )
            weights[names[name]] = numbers.in_range(weight, f"the weight of {name}", Fraction(1, 1000), Fraction(1000))
        return {"groups": self.groups, "rows": self.rows, "weights": weights, "joint": self.joint}

    @property
    def known_noise(self) -> Noise | None:
        """The kind of noise that is asked for, if it is one."""
        if self.noise not in (None, *get_args(Noise)):
            raise ParameterError(
                "HB553", f"{str(self.noise)[:40]!r} is not a kind of noise.", "Use 'laplace' or 'gaussian'."
            )
        return self.noise

    def refuse_for_call(self) -> None:
        """Reject options that only SQL queries have."""
        given = {"within": self.within, "parameters": self.parameters, "weights": self.weights, "raw": self.raw}
        given |= {"noise": self.noise}
        given["intervals"] = self.joint
        for name, value in given.items():
            if value not in (None, (), [], {}, False):
                raise ParameterError(
                    "HB147", f"A CALL does not accept {name}.", "Pass epsilon; write all other options in the call."
                )

    def allowed_delta(self, limit: Fraction, *, selects_groups: bool = False) -> Fraction:
        """Give the δ that may be used; `limit` is that of the caps.

        A query that selects groups uses up some of a budget's δ, so by default it takes a small share. The number of
        people that a group needs grows with ln(1/δ) only: by about a quarter for a thousandth of δ.
        """
        if self.delta is None:
            return max(limit * GROUPS_SHARE, min(limit, numbers.DELTA_MIN)) if selects_groups else limit
        # 0 requests noise without δ
        return Fraction(0) if numbers.exact(self.delta, "delta") == 0 else numbers.delta(self.delta)

    def text(self) -> str:
        r"""Write the query as the ledger stores it: one line without comments, then the options that affect the answer.

        >>> Question("select  count(*) -- all\n FROM t WHERE a = $1", parameters=[7], rows=1).text()
        'SELECT COUNT(*) FROM t WHERE a = $1 -- $1 = 7, rows = 1'
        """
        return once(("text", self.exact()), self._text, weigh=len)

    def exact(self) -> Hashable:
        """Give everything that a plan depends on, with its types: two questions that are equal in it are the same."""
        options = (self.epsilon, self.within, self.delta, self.groups, self.rows, self.raw, self.intervals, self.noise)
        listed = (*self.parameters, *(part for item in (self.weights or {}).items() for part in item))
        typed = tuple((type(value), repr(value)) for value in (*options, *listed))
        return self.sql, self.dialect, len(self.parameters), typed, self.user_function

    def _text(self) -> str:
        text = call.parse_call(self.sql).text() if call.is_call(self.sql) else _canonical(self.sql, self.dialect)
        options = [f"${place} = {value!r}" for place, value in enumerate(self.values(), 1)]
        options += [f"{name} = {value}" for name, value in (("groups", self.groups), ("rows", self.rows)) if value]
        options += [f"weight of {name} = {weight}" for name, weight in sorted((self.weights or {}).items())]
        options += ["raw"] if self.raw else []
        options += [] if self.noise is None else [f"noise = {self.known_noise!r}"]
        # queries with different meanings must not share a replay key
        options += [f"dialect = {self.dialect}"] if self._is_ambiguous() else []
        return f"{text} -- {', '.join(options)}" if options else text

    def _is_ambiguous(self) -> bool:
        """Tell whether the stored text means something else in DuckDB's dialect."""
        if call.is_call(self.sql):
            return False
        return is_ambiguous(parse(self.sql, dialect=self.dialect, released=True)[0], self.dialect)


def not_free() -> ParameterError:
    """Give the error of a question that must cost nothing, where something would have to be charged."""
    return ParameterError(
        "HB167",
        "This answer is not free: no release of exactly this query is recorded for the data as it is now, and earlier"
        " releases do not determine it. Nothing was run or charged.",
        "See what it costs with estimate (`hubbub plan`). To pay, ask again without free=True, --free or"
        " SET hubbub.free = on.",
    )


def _unpriced() -> ParameterError:
    return ParameterError(
        "HB132",
        "Neither epsilon nor within was given, or both were.",
        "Pass exactly one: epsilon=0.1 sets the privacy cost, within=50 sets the target margin of error.",
    )


def _canonical(sql: str, dialect: str) -> str:
    return duckdb_sql(*parse(sql, dialect=dialect, released=True))
