"""What every client does, in the same order, and what must come of it.

A client prints (or returns) one line of text for each step: cells are divided by `|`, and rows by `;`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

#: Statements that every client sends.
ONE = "SELECT 1"
TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY table_name"
COLUMNS = (
    "SELECT column_name FROM information_schema.columns WHERE table_name = 'visits' AND table_schema = 'public'"
    " ORDER BY ordinal_position"
)
PRICE = "SET hubbub.epsilon = 0.1"
COUNTS = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region ORDER BY region"
EXPLAIN = f"EXPLAIN {COUNTS}"
REFUSED = "SELECT * FROM visits"
TYPES = "SELECT word, whole, part, day FROM kinds ORDER BY whole"
PREPARED = "SELECT COUNT(*) AS n FROM visits WHERE age > "
LIMIT = 30

STATEMENTS: Mapping[str, str] = {
    "ONE": ONE,
    "TABLES": TABLES,
    "COLUMNS": COLUMNS,
    "PRICE": PRICE,
    "COUNTS": COUNTS,
    "EXPLAIN": EXPLAIN,
    "REFUSED": REFUSED,
    "TYPES": TYPES,
    "PREPARED": PREPARED,
    "LIMIT": str(LIMIT),
}

#: The steps, in their order, with the head of their column in the table.
STEPS: Mapping[str, str] = {
    "sign in": "sign in",
    "tables": "list tables",
    "columns": "describe a table",
    "explain": "EXPLAIN",
    "priced": "a query with a price",
    "again": "again, free",
    "refused": "a refusal",
    "after": "goes on after it",
    "types": "text, integer, real, date",
    "prepared": "a parameter",
}

Rows = Iterable[Sequence[Any]]
Lines = dict[str, str]


def text(rows: Rows) -> str:
    """Write rows as one line."""
    return ";".join("|".join(map(str, row)) for row in rows)


def first(rows: Rows) -> list[str]:
    """Return the first cell of each row."""
    return [str(row[0]) for row in rows]


def walk(
    fetch: Callable[[str], Rows],
    prepared: Callable[[str, int], Rows],
    *,
    placeholder: str,
    execute: Callable[[str], object] | None = None,
    tables: Callable[[], Iterable[str]] | None = None,
    columns: Callable[[], Iterable[str]] | None = None,
) -> Lines:
    """Take all steps with one client of Python; a step that fails says why."""

    def refuse() -> str:
        try:
            fetch(REFUSED)
        except Exception as error:  # noqa: BLE001 - each client has its own
            return str(error)
        return "not refused"

    (execute or fetch)(PRICE)
    steps: dict[str, Callable[[], str]] = {
        "sign in": lambda: text(fetch(ONE)),
        "tables": lambda: ";".join(tables() if tables else first(fetch(TABLES))),
        "columns": lambda: ";".join(columns() if columns else first(fetch(COLUMNS))),
        "explain": lambda: text(fetch(EXPLAIN)),
        "priced": lambda: text(fetch(COUNTS)),
        "again": lambda: text(fetch(COUNTS)),
        "refused": refuse,
        "after": lambda: text(fetch(ONE)),
        "types": lambda: text(fetch(TYPES)),
        "prepared": lambda: text(prepared(PREPARED + placeholder, LIMIT)),
    }
    lines = {}
    for name, step in steps.items():
        try:
            lines[name] = step()
        except Exception as error:  # noqa: BLE001
            lines[name] = f"error: {error}"
    return lines


def verdicts(lines: Mapping[str, str], charges: int) -> dict[str, str]:
    """Judge each step: "yes", or what came instead. `charges` is how many the ledger has of this client: two."""
    found = {name: " ".join(lines.get(name, "nothing").split())[:200] for name in STEPS}
    counts = [row.split("|") for row in lines.get("priced", "").split(";")]
    right = {
        "sign in": found["sign in"] == "1",
        "tables": {"kinds", "visits"} <= set(found["tables"].split(";")),
        "columns": found["columns"].split(";") == ["region", "age", "day", "cost"],
        "explain": "cost" in found["explain"] and not found["explain"].startswith("error"),
        "priced": [row[0] for row in counts] == ["East", "North", "South", "West"]
        and all(abs(int(row[1]) - 100) < 1000 for row in counts if len(row) == 2 and row[1].isdigit()),
        "again": found["again"] == found["priced"] and charges == 2,
        "refused": "HB5" in found["refused"],
        "after": found["after"] == "1",
        "types": found["types"] == "a|1|2.5|2026-01-31;b|2|-0.25|1999-12-31",
        "prepared": found["prepared"].isdigit(),
    }
    return {
        name: "yes" if ok else f"{found[name]} ({charges} charges)" if name == "again" else found[name]
        for name, ok in right.items()
    }
