"""SQL that truncates a relation to a maximum number of rows per privacy unit."""

from hubbub.core.schema import Kind
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.relations import UNIT, Join, Rel, Scan, Truncate, Union, UnitWindow, columns, owner_kind
from hubbub.sql.unit_parts import small


def render_cut(rel: Truncate, rows: str, dialect: Dialect) -> str:
    """Write the rows that are kept: all rows of units within the bound, and the first rows by hash of the others.

    Theorem (A cut keeps neighbors). Taking one unit out of the data takes out of the cut relation exactly the rows
    that the unit has there, at most `rows` of them, and leaves every other unit's rows as they were.
    Proof    By "One owner for each row" this holds of the relation that is cut. Which rows of a unit are kept depends
             on the values of that unit's rows alone: they are ordered by a salted hash of the unit, the values and the
             number of the copy, then by the values, then by the copy. Values are in one form each (numbers have one
             zero, texts are compared byte by byte, there is no NaN), so rows that tie are the same row, whichever copy
             is called the first. So the map is one from a unit's rows to a unit's rows, applied to each unit.
    Assumes  The engine computes equal hashes of equal values.
    Tested   tests/sql/test_truncation.py::test_a_cut_is_a_function_of_the_rows_of_one_unit
             tests/sql/test_truncation.py::test_a_cut_keeps_the_same_rows_on_every_engine
    """
    unit = dialect.identifier(UNIT)
    names = [dialect.identifier(column.name) for column in columns(rel)]
    kinds = [Kind.REAL if column.kind.numeric else column.kind for column in columns(rel)]
    copy, place = dialect.identifier("$copy"), dialect.identifier("$place")
    whole, heavy, copies, order = (dialect.identifier(f"$cut_{name}") for name in ("rows", "heavy", "copies", "order"))
    listed = ", ".join([unit, *names])
    one_form = [
        f"{dialect.one_zero(name)} AS {name}" if kind is Kind.REAL else name
        for name, kind in zip(names, kinds, strict=True)
    ]
    owner = (dialect.one_zero(unit) if owner_kind(rel) is Kind.REAL else unit, owner_kind(rel))
    hashed = _hash(rel, dialect, owner, *zip(names, kinds, strict=True), (copy, Kind.INTEGER))
    by_value = "".join(f", {name} NULLS LAST" for name in names)
    # reading a plain scan twice is faster than materializing it; a join is computed once
    stored = _joined(rel.input) or (dialect.splits_units and small(rel.input))
    once = dialect.materialized if stored else dialect.inlined
    return (
        f"WITH {whole} AS {once}(SELECT {', '.join([unit, *one_form])} FROM ({rows}) AS w), "
        f"{heavy} AS (SELECT {unit} FROM {whole} GROUP BY {unit} HAVING count(*) > {rel.rows}), "
        f"{copies} AS (SELECT {listed}, row_number() OVER (PARTITION BY {listed}{dialect.unordered}) AS {copy} "
        f"FROM {dialect.with_match(whole, heavy, (unit,))}), "
        f"{order} AS (SELECT {listed}, rank() OVER (PARTITION BY {unit} ORDER BY {hashed}{by_value}, {copy}) "
        f"AS {place} FROM {copies}) "
        f"SELECT {listed} FROM {dialect.without_match(whole, heavy, (unit,))} "
        f"UNION ALL SELECT {listed} FROM {order} WHERE {place} <= {rel.rows}"
    )


def _hash(rel: Truncate, dialect: Dialect, *values: tuple[str, Kind]) -> str:
    # use a separate salt, so that this choice is independent of the contribution bounding
    salt = f"{rel.salt} cut"
    return dialect.own_hash(salt, values) if rel.hashing == "engine" else dialect.portable_hash(salt, values)


def _joined(rel: Rel) -> bool:
    match rel:
        case Scan():
            return rel.table.unit is not None and rel.table.unit.path is not None and bool(rel.table.unit.path.steps)
        case Join() | UnitWindow() | Truncate():
            return True
        case Union():
            return any(map(_joined, rel.inputs))
        case _:
            return _joined(rel.input)
