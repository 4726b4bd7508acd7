"""SQL that finds the owner of each row: along references between tables, or a person's hour, day, week or month.

Tested in tests/sql/test_owner_path.py.
"""

from collections.abc import Sequence

from hubbub.core.schema import Column, Kind, OwnerPath, Period, Reference
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.expressions import Col, FunctionCall, Literal

#: The owner's column in the rows of a table.
OWNER = "$owner"


def owned_rows(
    table: str, columns: Sequence[str], steps: Sequence[Reference], path: OwnerPath, dialect: Dialect
) -> str:
    """Write the rows of a table that have an owner, with the given columns and the owner.

    Theorem (One owner through keys). Let the keys on the path be unique. Then each row of the table is given at most
    once, with one owner, and taking one unit out of the data, in all tables at once, takes away exactly the rows with
    that owner and changes no other.
    Proof    By induction over the steps. Without one, a row's owner is its privacy ID; a row without it is left out.
             With one, a row refers to at most one row of the next table, because that table's key is unique, so it is
             given at most once, with that row's owner; if it refers to none, or to one without an owner, it is left
             out. What a unit owns is all rows with that owner, in every table. A row of another owner refers to a row
             of that same other owner, which stays, with its owner, by induction; and no row becomes the target of a
             reference by taking others away. NULL equals nothing, so it refers to nothing.
    Assumes  keys are unique in the data and in its neighbors: `curator.keys` checks the data, and taking rows away
             keeps a key unique. Whoever replaces a unit keeps to the keys as well.
    Charges  nothing.
    Tested   tests/sql/test_owner_path.py::test_taking_an_owner_away_takes_its_rows_away_and_changes_no_other
             tests/sql/test_owner_path.py::test_a_key_that_is_not_unique_would_give_one_row_two_owners
    """
    if not steps:
        column = dialect.identifier(path.column)
        outputs = [*map(dialect.identifier, dict.fromkeys(columns))]
        owner = f"{dialect.owner(column, path.kind)} AS {dialect.identifier(OWNER)}"
        rows = f"FROM {dialect.identifier(table)} AS s WHERE {column} IS NOT NULL"
        return f"SELECT {', '.join([*outputs, owner])} {rows}"
    step = steps[0]
    targets = [
        f"{dialect.owner(dialect.identifier(column), kind)} AS {dialect.identifier(f'$key{i}')}"
        for i, (column, kind) in enumerate(zip(step.key, step.kinds, strict=True))
    ]
    owner = dialect.identifier(OWNER)
    inner = owned_rows(step.table, step.key, steps[1:], path, dialect)
    owners = f"SELECT {', '.join(targets)}, {owner} FROM ({inner}) AS k"
    tests = " AND ".join(
        f"{dialect.owner(f's.{dialect.identifier(column)}', kind)} = o.{dialect.identifier(f'$key{i}')}"
        for i, (column, kind) in enumerate(zip(step.columns, step.kinds, strict=True))
    )
    outputs = [f"s.{dialect.identifier(column)}" for column in dict.fromkeys(columns)]
    if not dialect.fence:
        return (
            f"SELECT {', '.join([*outputs, f'o.{owner}'])} FROM {dialect.identifier(table)} AS s "
            f"INNER JOIN ({owners}) AS o ON {tests}"
        )
    # as in a join of two private tables: both sides are read even if one is empty
    here = dialect.identifier("$here")
    read = ", ".join(map(dialect.identifier, dict.fromkeys((*columns, *step.columns))))
    joined = (
        f"SELECT {', '.join([*outputs, f'o.{owner}', f's.{here}'])} "
        f"FROM (SELECT {read}, TRUE AS {here} FROM {dialect.identifier(table)} AS s) AS s "
        f"FULL JOIN ({owners}) AS o ON {tests}{dialect.fence}"
    )
    names = ", ".join([*map(dialect.identifier, dict.fromkeys(columns)), owner])
    return f"SELECT {names} FROM ({joined}) AS j WHERE {here} AND {owner} IS NOT NULL"


def period_owner(period: Period, dialect: Dialect) -> tuple[str, str]:
    """Write the owner of a row where one period of a person is protected, and the condition that it has one.

    Theorem (One owner for each period). Two rows have the same owner exactly if they have the same person and their
    times lie in the same period, in UTC. So the owner is a function of the row, and taking one period of a person out
    of the data takes away exactly the rows with that owner.
    Proof    The text is the person, an @, and the start of the period. The start has no @, so the last @ separates the
             two, and each is a function of the text. Persons are written in one form each (an integer or a text), and
             so are the starts of periods, which are timestamps of the years 1 to 9999: the scan clamps times to these.
    Assumes  the text form of an integer and of a timestamp is the engine's own, one for each value.
    Charges  nothing. A person with k periods is k units, so ε for one period is kε for that person (group privacy).
    Tested   tests/sql/test_periods.py::test_rows_share_an_owner_exactly_if_they_share_person_and_period
             tests/sql/test_periods.py::test_taking_a_period_away_takes_its_rows_away_and_changes_no_other
    """
    person, time = dialect.identifier(period.column), dialect.identifier(period.time)
    trunc = FunctionCall(
        "date_trunc", (Literal(period.per, Kind.TEXT), Col(period.time, period.time_kind)), Kind.TIMESTAMP
    )
    scanned = dialect.scanned(Column(period.time, period.time_kind))
    start = dialect.spelling("date_trunc")(trunc, [dialect.literal(period.per, Kind.TEXT), scanned])
    text = dialect.types[Kind.TEXT]
    whole = f"(CAST({person} AS {text}) || '@' || CAST({start} AS {text}))"
    return dialect.owner(whole, Kind.TEXT), f"{person} IS NOT NULL AND {time} IS NOT NULL"
