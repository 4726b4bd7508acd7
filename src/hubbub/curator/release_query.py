"""Queries over earlier releases, as in SELECT … FROM release(17): free, because what was released is public.

`release(17)` is the answer of charge 17, in which each noisy column is followed by the ends of its interval.
`release(17, 2)` is the second of the noisy tables that this answer was computed from.

Tested in tests/curator/test_release_query.py.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
from sqlglot import exp

from hubbub.answers.estimate import Estimate
from hubbub.answers.release import Output, Release, read_answer
from hubbub.core import call
from hubbub.core.schema import Kind, Table
from hubbub.curator import receipt as receipts
from hubbub.curator.public_query import ctes_in_scope
from hubbub.curator.question import Question
from hubbub.errors import QueryError
from hubbub.sql import release_size as size
from hubbub.sql.after import after, as_text, run_after
from hubbub.sql.bind_after import in_order
from hubbub.sql.bind_scope import matches
from hubbub.sql.ordinary_sql import with_parameters
from hubbub.sql.parse import parse
from hubbub.sql.presentation import Answer
from hubbub.sql.query import After, ReleasedTable
from hubbub.sql.spellings import settle
from hubbub.sql.text import SourceText

FREE = "free: the query reads earlier releases, which are public"

#: Finds a release that the analyst may see, by its number.
Find = Callable[[int], Release]


@dataclass(frozen=True)
class ReleaseQuery:
    """A query over earlier releases and small public tables."""

    text: str
    after: After
    tables: Mapping[str, Sequence[Output]]
    numbers: tuple[int, ...]

    def estimate(self) -> Estimate:
        """Return the estimate: no cost, and the error of what was released."""
        nothing = Fraction(0)
        return Estimate(
            (),
            nothing,
            nothing,
            "no",
            0,
            (),
            (FREE,),
            admitted=True,
            largest=nothing,
            scaling=(),
            sql=(self.after.sql,),
        )

    def answer(self, *, most: int) -> Release:
        """Run the query on what was released."""
        rows = most // max(1, len(self.after.outputs))
        try:
            columns = run_after(self.after, {name: _arrays(each) for name, each in self.tables.items()}, most=rows + 1)
        except duckdb.Error:
            raise QueryError(
                "HB758",
                "The query over earlier releases failed or took too long. Nothing was charged.",
                "Check joins without a condition, and select fewer rows.",
            ) from None
        size.refuse(len(columns[0]), [size.NUMBER] * len(columns), most=most)
        blank = np.full(len(columns[0]), np.nan)
        nothing = tuple(blank for _ in columns)
        answer = Answer(tuple(name for name, _ in self.after.outputs), tuple(columns), nothing, nothing, blank)
        outputs, ratio = receipts.outputs(answer)
        paper = {"query": self.text, "releases": list(self.numbers), "after": self.after.sql, "data": [], "ledger": []}
        return Release(tuple(outputs), ratio, Fraction(0), Fraction(0), paper)


def release_query(question: Question, tables: Mapping[str, Table], find: Find) -> ReleaseQuery | None:
    """Return the query if it reads earlier releases; None if the usual path must decide.

    Theorem (Earlier releases). The answer depends on nothing but releases that the analyst may see, and public tables.
    Proof    `find` gives what the list of releases shows this analyst, or raises. The database that runs the query is
             given these rows and the rows of public tables, and nothing else.
    Charges  nothing: post-processing.
    Tested   tests/curator/test_release_query.py::test_only_releases_that_the_analyst_may_see_are_read
    """
    if call.is_call(question.sql) or "release" not in question.sql.lower():
        return None
    tree, source = parse(question.sql, dialect=question.dialect, released=True)
    named = [node for node in tree.find_all(exp.Table) if isinstance(node.this, exp.Anonymous)]
    if not any(node.this.name.lower() == "release" for node in named):
        return None
    values = question.values()
    tree, used = with_parameters(settle(tree.copy(), question.dialect, source), values, source)
    if len(used) < len(values):
        raise source.error(None, "HB509", "Some parameters are not used.", "Pass one value for each parameter.")
    reading = _Reading(source, tables, find)
    for node in list(tree.find_all(exp.Table)):
        reading.read(node)
    checked = after(in_order(tree), tuple(reading.released.values()), tuple(reading.public.values()), source)
    return ReleaseQuery(question.text(), checked, reading.columns, tuple(reading.numbers))


@dataclass
class _Reading:
    """The tables of a query over releases, while they are looked up."""

    source: SourceText
    tables: Mapping[str, Table]
    find: Find
    released: dict[str, ReleasedTable] = field(default_factory=dict)
    columns: dict[str, Sequence[Output]] = field(default_factory=dict)
    public: dict[str, Table] = field(default_factory=dict)
    numbers: list[int] = field(default_factory=list)

    def read(self, node: exp.Table) -> None:
        """Look up one table, and write it by the name that it has in the database."""
        if isinstance(node.this, exp.Anonymous) and node.this.name.lower() == "release":
            self._release(node)
        elif isinstance(node.this, exp.Identifier) and not any(
            matches(c.alias, node.this) for c in ctes_in_scope(node)
        ):
            self._public(node, node.this)

    def _release(self, node: exp.Table) -> None:
        numbers = [_number(argument) for argument in node.this.expressions]
        if not 1 <= len(numbers) <= 2 or None in numbers:
            raise self.source.error(
                node, "HB758", "release takes the number of a charge.", "Write release(17), as `releases` lists it."
            )
        number, part = numbers[0] or 0, numbers[1] if len(numbers) == 2 else None
        name = f"$release{number}" + ("" if part is None else f".{part}")
        if name not in self.released:
            columns = _columns(self.find(number), part)
            if columns is None:
                raise self.source.error(
                    node, "HB758", f"Release {number} has no noisy table {part}.", "Write release(17) for its answer."
                )
            self.columns[name] = columns
            self.released[name] = ReleasedTable(name, tuple((each.name, Kind(each.kind)) for each in columns))
            self.numbers.append(number)
        node.set("this", exp.to_identifier(name, quoted=True))
        shown = [exp.column(exp.to_identifier(each.name, quoted=True)) for each in self.columns[name]]
        alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(f"release_{number}"))
        node.set("alias", None)
        inner = exp.select(*shown).from_(node.copy())
        node.replace(exp.Subquery(this=inner, alias=alias))

    def _public(self, node: exp.Table, name: exp.Identifier) -> None:
        known = [table for table in self.tables.values() if matches(table.name, name)]
        if len(known) != 1 or not known[0].public or not known[0].rows:
            raise self.source.error(
                node,
                "HB758",
                "A query over earlier releases reads releases and small public tables alone.",
                "Query the private table first, and then join its release.",
            )
        node.set("this", exp.to_identifier(known[0].name, quoted=True))
        self.public[known[0].name] = known[0]


def _number(node: exp.Expr) -> int | None:
    text = str(node.this) if isinstance(node, exp.Literal) else ""
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 19 else None


def _columns(release: Release, part: int | None) -> Sequence[Output] | None:
    """Return the columns of a release, or of one of the noisy tables that it was computed from."""
    if part is None:
        return release.flat()
    tables: list[Any] = release.model.get("released", [])
    if not 1 <= part <= len(tables):
        return None
    outputs, _, _ = read_answer({"columns": tables[part - 1]["columns"], "ratio": []})
    return outputs


def _arrays(outputs: Sequence[Output]) -> dict[str, Any]:
    return {each.name: np.array([as_text(cell) for cell in each.values], dtype=object) for each in outputs}
