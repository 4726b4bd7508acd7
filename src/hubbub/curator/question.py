"""A question with what may be said about its answer. Frozen, and checked before anything is planned."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TypedDict

from hubbub.analyses.base import PreparedAnalysis, Setting
from hubbub.answers.options import exact_parameter
from hubbub.core import call, numbers
from hubbub.core.numbers import Number
from hubbub.core.schema import Value
from hubbub.errors import ParameterError
from hubbub.sql.expressions import Col
from hubbub.sql.parse import parse
from hubbub.sql.query import Query


class Shape(TypedDict):
    """What the planner is told beside the price."""

    groups: int | None
    rows: int | None
    weights: Mapping[str, Fraction]


@dataclass(frozen=True, slots=True)
class Question:
    """One query.

    epsilon      what to spend; or
    within       the ± wanted, as a number or as "5%"
    delta        the δ that Gaussian noise and discovered keys may use: that of the budget if None, none at all if 0
    parameters   the values of $1, $2, …
    groups, rows tighten what the owner lets one unit contribute: less noise, where people have less
    weights      how much more exactly one output is wanted than another
    raw          leave estimates as they fall: negative counts, averages outside their bounds
    own          prepares an analysis of code that who holds the data handed in; no text and no request can carry it
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
    own: Callable[[Setting], PreparedAnalysis] | None = None

    def values(self) -> tuple[Value, ...]:
        """Give the parameters, exactly."""
        return tuple(map(exact_parameter, self.parameters))

    def wants_accuracy(self) -> bool:
        """Say whether a ± is given instead of a price; exactly one of both must be."""
        if (self.epsilon is None) == (self.within is None):
            raise ParameterError(
                "HB132",
                "it is not said how much to spend, or how exact the answer shall be.",
                "Give one of both: epsilon=0.1, or within=50.",
            )
        return self.epsilon is None

    def price(self) -> Fraction:
        """Give the ε that was offered."""
        return numbers.epsilon(0 if self.epsilon is None else self.epsilon)

    def shape(self, query: Query) -> Shape:
        """Give what else the planner is told; weights are given by the names of outputs."""
        names = {name: expr.name for name, expr in query.select if isinstance(expr, Col)}
        weights = {}
        for name, weight in (self.weights or {}).items():
            if name not in names:
                known = ", ".join(names) or "none"
                raise ParameterError("HB138", f"there is no output called {name!r} to weigh.", f"There are: {known}.")
            weights[names[name]] = numbers.in_range(weight, f"the weight of {name}", Fraction(1, 1000), Fraction(1000))
        return {"groups": self.groups, "rows": self.rows, "weights": weights}

    def refuse_for_call(self) -> None:
        """Refuse what only a query in SQL can be told."""
        said = {"within": self.within, "parameters": self.parameters, "weights": self.weights, "raw": self.raw}
        for name, value in said.items():
            if value not in (None, (), [], {}, False):
                raise ParameterError(
                    "HB147", f"a CALL takes no {name}.", "Say what to spend with epsilon, and the rest in the call."
                )

    def allowed(self, most: Fraction) -> Fraction:
        """Give the δ that may be used; `most` is that of the caps."""
        if self.delta is None:
            return most
        # a δ of zero insists on noise without one
        return Fraction(0) if numbers.exact(self.delta, "delta") == 0 else numbers.delta(self.delta)

    def text(self) -> str:
        r"""Write the question as it stands in the ledger: one line without comments, then what else makes its answer.

        >>> Question("select  count(*) -- all\n FROM t WHERE a = $1", parameters=[7], rows=1).text()
        'SELECT COUNT(*) FROM t WHERE a = $1 -- $1 = 7, rows = 1'
        """
        text = call.parse_call(self.sql).text() if call.is_call(self.sql) else _canonical(self.sql, self.dialect)
        said = [f"${place} = {value!r}" for place, value in enumerate(self.values(), 1)]
        said += [f"{name} = {value}" for name, value in (("groups", self.groups), ("rows", self.rows)) if value]
        said += [f"weight of {name} = {weight}" for name, weight in sorted((self.weights or {}).items())]
        said += ["raw"] if self.raw else []
        return f"{text} -- {', '.join(said)}" if said else text


@lru_cache(maxsize=1024)
def _canonical(sql: str, dialect: str) -> str:
    return parse(sql, dialect=dialect)[0].sql(dialect="duckdb", comments=False)
