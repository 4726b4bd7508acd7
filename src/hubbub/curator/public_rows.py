"""The public number of rows of a dataset: answered exactly and for free, without charge, noise or ledger entry.

Tested in tests/curator/test_public_rows.py.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from hubbub.analyses.base import Arrays
from hubbub.answers.estimate import ROWS_PUBLIC, Estimate
from hubbub.answers.release import Release
from hubbub.core.schema import Table
from hubbub.core.secret import Secret, combine_secrets
from hubbub.curator.question import Question
from hubbub.curator.receipt import outputs
from hubbub.engines.base import Engine
from hubbub.engines.registry import engine_named
from hubbub.errors import QueryError, RunError
from hubbub.noise.source import system
from hubbub.sql.bind import bind
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.finish import finish
from hubbub.sql.plan import Plan, plan
from hubbub.sql.public_rows import exact_and_free
from hubbub.sql.query import Query


@dataclass(frozen=True)
class PublicRowsQuery:
    """A query that asks for nothing but the public number of rows of one table."""

    text: str
    table: Table
    plan: Plan

    def estimate(self) -> Estimate:
        """Return the estimate: no cost and no error."""
        nothing, sql = Fraction(0), tuple(self.plan.sql.values())
        return Estimate(
            (self.table.name,),
            nothing,
            nothing,
            "no",
            1,
            (),
            (ROWS_PUBLIC,),
            admitted=True,
            largest=nothing,
            scaling=(),
            sql=sql,
        )

    def answer(self, ask: Callable[[str], Secret[Arrays]], version: str) -> Release:
        """Count the rows."""
        try:
            tables = combine_secrets({each.name: ask(each.sql) for each in self.plan.statements})
            answer = tables.through(lambda counted: finish(self.plan, counted, system()))
        except RunError:
            raise QueryError(
                "HB586",
                f"The rows of {self.table.name} could not be counted in time. Nothing was charged.",
                "Try again, or contact the data owner.",
            ) from None
        columns, ratio = outputs(answer)
        data = [{"dataset": self.table.name, "version": version, "unit": "row"}]
        receipt = {"public": True, "query": self.text, "data": data, "relation": "replace", "ledger": []}
        return Release(tuple(columns), ratio, Fraction(0), Fraction(0), receipt)


def count_rows(table: Table, engine: Engine) -> int:
    """Count the rows of a table whose number of rows is public."""
    name = table.name.replace('"', '""')
    question = Question(f'SELECT COUNT(*) FROM "{name}"')  # noqa: S608 - a declared name
    query = bind(question.sql, tables={table.name: table}, parameters=(), dialect=question.dialect)
    counted = public_rows_query(query, question, RenderOptions("", dialect=engine_named(engine.dialect).load_dialect()))
    if counted is None:
        raise AssertionError("the number of rows is public")
    (rows,) = counted.answer(engine.run, "").outputs[0].values
    if not isinstance(rows, int):
        raise AssertionError("a number of rows is a whole number")
    return rows


def public_rows_query(query: Query, question: Question, options: RenderOptions) -> PublicRowsQuery | None:
    """Return the query if it asks for the public number of rows and nothing else; None if it has to be charged."""
    if not exact_and_free(query):
        return None
    made = plan(
        query,
        epsilon=Fraction(1),
        delta=Fraction(0),
        salt=options.salt,
        hashing=options.hashing,
        dialect=options.dialect,
    )
    if any(each.event is not None for each in made.measures) or made.choices or made.levels:
        raise AssertionError("a free query draws no noise")
    return PublicRowsQuery(question.text(), query.tables[0], made)
