"""Queries for people who prefer frames: `h.table("visits").filter(…).group_by("region").agg(n=count())`.

A frame is the text of a query, and nothing else: it is planned, charged and answered like any other SQL.

Tested in tests/answers/test_frames.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from hubbub.answers.frame_expressions import AggregateExpression, Expression, col, name
from hubbub.core import numbers
from hubbub.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

EstimateT_co = TypeVar("EstimateT_co", covariant=True)
ReleaseT_co = TypeVar("ReleaseT_co", covariant=True)

_JOINS = {"inner": "JOIN", "left": "LEFT JOIN"}


class FrameSession(Protocol[EstimateT_co, ReleaseT_co]):
    """A session of any kind: its answers, or promises of them."""

    @property
    def estimate(self) -> Callable[..., EstimateT_co]:
        """Estimates the privacy cost and the errors of a query."""
        ...

    @property
    def query(self) -> Callable[..., ReleaseT_co]:
        """Answers a query."""
        ...


@dataclass(frozen=True, repr=False)
class QueryFrame(Generic[EstimateT_co, ReleaseT_co]):
    """A query in the making. Each method returns another frame; `query` asks it."""

    _session: FrameSession[EstimateT_co, ReleaseT_co]
    _source: str
    _conditions: tuple[str, ...] = ()
    _keys: Mapping[str, str] = field(default_factory=dict)
    _aggregates: Mapping[str, str] = field(default_factory=dict)
    _order: tuple[str, ...] = ()
    _limit: int | None = None

    @classmethod
    def of(cls, session: FrameSession[EstimateT_co, ReleaseT_co], table: str) -> QueryFrame[EstimateT_co, ReleaseT_co]:
        """Return all rows of a table."""
        return cls(session, name(table))

    def join(self, table: str, on: str | tuple[str, ...], how: str = "inner") -> QueryFrame[EstimateT_co, ReleaseT_co]:
        """Join another table by columns of the same name; `how` is inner or left."""
        self._refuse_late("join")
        if how not in _JOINS:
            raise ParameterError("HB836", f"{how!r} is no way to join.", "Use 'inner' or 'left'.")
        columns = ", ".join(map(name, (on,) if isinstance(on, str) else on))
        return replace(self, _source=f"{self._source} {_JOINS[how]} {name(table)} USING ({columns})")

    def filter(self, *conditions: Expression) -> QueryFrame[EstimateT_co, ReleaseT_co]:
        """Keep the rows for which all conditions hold."""
        self._refuse_late("filter")
        if not all(isinstance(each, Expression) for each in conditions):
            raise ParameterError(
                "HB836", "A condition is no expression.", 'Write it with columns: col("age") > 30, not as a text.'
            )
        return replace(self, _conditions=(*self._conditions, *(each.sql for each in conditions)))

    def group_by(self, *columns: str, **computed: Expression) -> QueryFrame[EstimateT_co, ReleaseT_co]:
        """Group by columns, and by expressions with names."""
        self._refuse_late("group_by")
        keys = {each: col(each).sql for each in columns} | {key: each.sql for key, each in computed.items()}
        return replace(self, _keys={**self._keys, **keys})

    def agg(self, **aggregates: AggregateExpression) -> QueryFrame[EstimateT_co, ReleaseT_co]:
        """Compute aggregates: the answer has one column for each, by the name of its keyword."""
        if not aggregates or not all(isinstance(each, AggregateExpression) for each in aggregates.values()):
            raise ParameterError(
                "HB836", "agg needs aggregates with names.", 'For example: agg(n=count(), cost=avg("cost")).'
            )
        return replace(self, _aggregates={**self._aggregates, **{key: each.sql for key, each in aggregates.items()}})

    def order_by(self, *columns: str, descending: bool = False) -> QueryFrame[EstimateT_co, ReleaseT_co]:
        """Order the answer by some of its columns."""
        ends = " DESC" if descending else ""
        return replace(self, _order=(*self._order, *(name(each) + ends for each in columns)))

    def limit(self, rows: int) -> QueryFrame[EstimateT_co, ReleaseT_co]:
        """Keep the first rows of the answer."""
        return replace(self, _limit=numbers.integer(rows, "limit", 1, 10**7))

    def sql(self) -> str:
        """Write the query."""
        chosen = {**self._keys, **self._aggregates}
        listed = [each if each == name(key) else f"{each} AS {name(key)}" for key, each in chosen.items()]
        parts = [f"SELECT {', '.join(listed) or '*'} FROM {self._source}"]  # noqa: S608 - all names and values are quoted
        parts += [f"WHERE {' AND '.join(self._conditions)}"] if self._conditions else []
        parts += [f"GROUP BY {', '.join(self._keys.values())}"] if self._keys else []
        parts += [f"ORDER BY {', '.join(self._order)}"] if self._order else []
        parts += [f"LIMIT {self._limit}"] if self._limit is not None else []
        return " ".join(parts)

    def estimate(self, **options: Any) -> EstimateT_co:
        """Estimate the privacy cost and the errors: see `estimate` of the session. Free."""
        return self._session.estimate(self.sql(), **options)

    def query(self, **options: Any) -> ReleaseT_co:
        """Ask the query: see `query` of the session, which takes `epsilon` or `within`."""
        return self._session.query(self.sql(), **options)

    def __repr__(self) -> str:
        return f"<frame: {self.sql()}>"

    def _refuse_late(self, method: str) -> None:
        if self._aggregates:
            raise ParameterError(
                "HB836", f"{method} comes after agg.", f"Call {method} first; for results of results, write SQL."
            )


def ibis_sql(query: Any) -> str:
    """Write an expression of ibis as SQL, by ibis's own translation; a text stays as it is."""
    if isinstance(query, str):
        return query
    try:
        import ibis  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise ParameterError(
            "HB836",
            "This is neither SQL nor an expression that can be read.",
            "Pass a text, or install ibis-framework.",
        ) from None
    return str(ibis.to_sql(query, dialect="duckdb"))
