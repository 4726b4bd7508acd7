"""Queries that read only public tables: answered exactly and for free, without charge, noise or ledger entry.

They run in a separate, locked DuckDB that contains nothing but the public tables of the query, so that no text, however
it is read, can reach private data.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from hubbub.answers.cell_text import Cell
from hubbub.answers.estimate import PUBLIC, Estimate
from hubbub.answers.release import Output, Release
from hubbub.core import call
from hubbub.core.schema import Table
from hubbub.curator.public_binding import TYPES, check_binding
from hubbub.curator.question import Question
from hubbub.engines.base import Arrays, DataSource, Engine, EngineLimits, View, identifier
from hubbub.engines.duckdb.connection import DuckDBEngine
from hubbub.engines.multi_engine import MAX_UPLOADED_ROWS
from hubbub.engines.registry import engine_named
from hubbub.errors import QueryError, RunError
from hubbub.sql import release_size
from hubbub.sql.bind_scope import matches
from hubbub.sql.generate import duckdb_sql
from hubbub.sql.ordinary_sql import check_ordinary, kind_of, with_parameters
from hubbub.sql.parse import parse
from hubbub.sql.spellings import settle
from hubbub.sql.text import SourceText

#: Maximum number of seconds of a free query.
MAX_SECONDS = 30


@dataclass(frozen=True)
class PublicQuery:
    """A query that reads only these public tables, as text for DuckDB."""

    text: str
    sql: str
    tables: tuple[Table, ...]

    def estimate(self) -> Estimate:
        """Return the estimate: no cost and no error."""
        names = tuple(table.name for table in self.tables)
        nothing = Fraction(0)
        return Estimate(
            names, nothing, nothing, "no", 0, (), (PUBLIC,), admitted=True, largest=nothing, scaling=(), sql=(self.sql,)
        )

    def answer(
        self, views: Sequence[View], engine: Callable[[str], Engine], versions: Mapping[str, str], limits: EngineLimits
    ) -> Release:
        """Run the query on these views, of which those on servers are read through their `engine` first."""
        check_binding(self.sql, views)
        with tempfile.TemporaryDirectory(prefix="hubbub-public-") as folder:
            local = [
                _copy(view, engine(view.name), Path(folder) / f"{place}.parquet")
                if view.source.engine.is_server
                else view
                for place, view in enumerate(views)
            ]
            runner = DuckDBEngine(local, limits=_modest(limits))
            try:
                types = runner.run(_types_query(self.sql)).through(dict)
                arrays = runner.run(self.sql).through(dict)
            except RunError:
                raise _failed() from None
            finally:
                runner.close()
        outputs = tuple(_output(name, str(types[name][0]), arrays) for name in arrays)
        count = len(outputs[0].values) if outputs else 0
        return Release(outputs, [None] * count, Fraction(0), Fraction(0), self._receipt(versions))

    def _receipt(self, versions: Mapping[str, str]) -> dict[str, object]:
        data = [{"dataset": table.name, "version": versions[table.name], "unit": "none"} for table in self.tables]
        return {"public": True, "query": self.text, "data": data, "ledger": []}


def _modest(limits: EngineLimits) -> EngineLimits:
    """Return the limits of a free query: each opens a database of its own, beside that of charged queries."""
    return replace(limits, memory=limits.server_memory, seconds=min(limits.seconds, MAX_SECONDS))


def public_query(question: Question, tables: Mapping[str, Table], *, most: int) -> PublicQuery | None:
    """Return the query if it reads public tables and no other; None if the usual path must decide.

    Theorem (Public queries). The answer depends on no private table.
    Proof    It is computed by a database that was given the views of the returned tables and nothing else, all of which
             are public; whether there is an answer depends on the text and the declarations alone.
    Tested   tests/curator/test_public_query.py::test_no_text_reaches_a_private_table
    """
    if call.is_call(question.sql):
        return None
    tree, source = parse(question.sql, dialect=question.dialect, released=True)
    used = _public_tables(tree, tables)
    if not used:
        return None
    values = question.values()
    written, given = with_parameters(settle(tree.copy(), question.dialect, source), values, source)
    if len(given) < len(values):
        raise source.error(
            None, "HB509", "Some parameters are not used in the query.", "Pass one value for each parameter."
        )
    written = _limited(written, source, most)
    _name_tables(written, used)
    sql = duckdb_sql(written, source, identify=True)
    # the text that runs must read what was checked, whatever the generator wrote
    if _public_tables(parse(sql, released=True)[0], tables) != used:
        return None
    check_ordinary(sql, [table.name for table in used], source)
    return PublicQuery(question.text(), sql, used)


def _public_tables(tree: exp.Expr, tables: Mapping[str, Table]) -> tuple[Table, ...]:
    """Return the tables that a query reads if all of them are public, else nothing."""
    if any(clause.args.get("recursive") for clause in tree.find_all(exp.With)):
        return ()
    used: dict[str, Table] = {}
    for node in tree.find_all(exp.Table):
        name = node.this
        if not isinstance(name, exp.Identifier) or node.args.get("db") or node.args.get("catalog"):
            return ()
        if any(matches(cte.alias, name) for cte in ctes_in_scope(node)):
            continue
        candidates = [table for table in tables.values() if matches(table.name, name)]
        if len(candidates) != 1 or not candidates[0].public:
            return ()
        used[candidates[0].name] = candidates[0]
    return tuple(used.values())


def _name_tables(tree: exp.Expr, used: Sequence[Table]) -> None:
    """Write each table as it is declared, or as its WITH clause names it: case counts in quoted names."""
    for node in tree.find_all(exp.Table):
        name = node.this
        known = [cte.alias for cte in ctes_in_scope(node)] + [table.name for table in used]
        declared = next((each for each in known if matches(each, name)), None)
        if declared is not None and declared != name.name:
            node.set("this", exp.to_identifier(declared, quoted=True))


def ctes_in_scope(node: exp.Expr) -> Iterator[exp.CTE]:
    """List the WITH items that a table name can refer to: of enclosing queries, and before the one it is in."""
    child: exp.Expr | None = node
    while child is not None and (parent := child.parent) is not None:
        if isinstance(parent, exp.With):
            yield from parent.expressions[: next(i for i, cte in enumerate(parent.expressions) if cte is child)]
            child = parent.parent  # the items of this clause are done
            continue
        clause = parent.args.get("with_")
        if clause is not None:
            yield from clause.expressions
        child = parent


def _limited(tree: exp.Expr, source: SourceText, most: int) -> exp.Expr:
    """Limit the number of rows to one more than a result may have, so that a larger one is noticed."""
    clause = tree.args.get("limit")
    if clause is None:
        return tree.limit(most + 1) if isinstance(tree, exp.Select | exp.SetOperation) else tree
    number = clause.args.get("expression") or clause.args.get("count")
    if not isinstance(number, exp.Literal) or not number.is_int:
        raise source.error(clause, "HB508", "LIMIT must be a whole number.", "Write a number such as LIMIT 10.")
    if int(number.this) > most:
        number.replace(exp.Literal.number(str(most + 1)))
    return tree


def _types_query(sql: str) -> str:
    """Write a query for the types of the columns that computes no row."""
    empty = f"SELECT * FROM ({sql}) LIMIT 0"  # noqa: S608 - a checked query
    return f'SELECT typeof(COLUMNS(x.*)) AS "\\0" FROM (SELECT 1) AS one LEFT JOIN ({empty}) AS x ON TRUE'  # noqa: S608


def _output(name: str, kind: str, arrays: Arrays) -> Output:
    """Convert one column; NULL, NaN and infinity become None."""
    array = arrays[name]
    shown = kind_of(kind)
    mask = np.ma.getmaskarray(array).tolist()
    cells = [None if hidden else _cell(cell, shown) for cell, hidden in zip(_plain(array, shown), mask, strict=True)]
    return Output(name, shown, cells)


def _plain(array: NDArray[Any], kind: str) -> list[object]:
    data = array.data if isinstance(array, np.ma.MaskedArray) else array
    unit = {"date": "datetime64[D]", "timestamp": "datetime64[us]"}.get(kind)
    cells: list[object] = (data if unit is None else data.astype(unit)).tolist()
    return cells


def _cell(cell: object, kind: str) -> Cell:
    match kind:
        case "real":
            number = float(cell)  # type: ignore[arg-type]
            return number if np.isfinite(number) else None
        case "integer":
            return int(cell)  # type: ignore[call-overload,no-any-return]
        case "boolean":
            return bool(cell)
        case "date" | "timestamp":
            return cell if isinstance(cell, date) else None
    return str(cell)


def _copy(view: View, engine: Engine, path: Path) -> View:
    """Copy a public table from a server to a file, as the server's engine reads it."""
    dialect = engine_named(engine.dialect).load_dialect()
    names = ", ".join(dialect.identifier(name) for name, _ in view.columns)
    limit = MAX_UPLOADED_ROWS + 1
    text = f"SELECT {names} FROM {dialect.identifier(view.name)} LIMIT {limit}"  # noqa: S608 - declared names
    try:
        arrays = engine.run(text).through(dict)
    except RunError:
        raise _failed() from None
    cells = {f"c{place}": np.array(_texts(arrays[name]), dtype=object) for place, (name, _) in enumerate(view.columns)}
    if len(cells["c0"]) > MAX_UPLOADED_ROWS:
        raise QueryError(
            "HB575",
            f"{view.name} is on a server and has more than {MAX_UPLOADED_ROWS:,} rows.",
            "Query it on its server, or join it with a private table there.",
        )
    chosen = ", ".join(
        f"CAST(c{place} AS {TYPES[kind]}) AS {identifier(name)}" for place, (name, kind) in enumerate(view.columns)
    )
    with duckdb.connect() as connection:
        connection.register("cells", cells)
        target = str(path).replace("'", "''")
        connection.execute(f"COPY (SELECT {chosen} FROM cells) TO '{target}' (FORMAT parquet)")  # noqa: S608
    return replace(view, source=DataSource("parquet", path))


def _texts(array: NDArray[Any]) -> list[str | None]:
    """Write cells as text, which DuckDB reads back exactly."""
    mask = np.ma.getmaskarray(array).tolist()
    data = array.data if isinstance(array, np.ma.MaskedArray) else array
    return [
        None if hidden or cell is None else str(cell).lower() if isinstance(cell, bool) else str(cell)
        for cell, hidden in zip(data.tolist(), mask, strict=True)
    ]


def _failed() -> QueryError:
    return QueryError(
        "HB579",
        f"The query on public tables failed or took longer than {MAX_SECONDS} seconds.",
        "Check casts and divisions, or select fewer rows.",
    )


def check_size(release: Release, *, most: int) -> Release:
    """Reject an answer that is larger than the owner allows."""
    widths = [
        release_size.labels_width(output.values) if output.kind == "text" else release_size.NUMBER
        for output in release.outputs
    ]
    release_size.refuse(len(release.ratio), widths, most=most)
    return release
