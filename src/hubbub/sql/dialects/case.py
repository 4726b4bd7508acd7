"""Upper and lower case as DuckDB has them, one code point for one, so that every engine can do the same by translating.

What other engines call lower and upper follows a collation: PostgreSQL's "C" knows ASCII alone, ICU's makes SS of ß.
"""

from functools import lru_cache
from typing import Literal

import duckdb

#: What DuckDB's trim takes for a blank.
BLANKS = "".join(map(chr, (32, 160, 5760, *range(8192, 8203), 8239, 8287, 12288)))


@lru_cache(maxsize=2)
def simple_case(function: Literal["lower", "upper"]) -> tuple[str, str]:
    """Give the code points that the function changes, and what it makes of each, in the same order."""
    text = f"SELECT chr(i::INTEGER) AS a, {function}(chr(i::INTEGER)) AS b FROM range(1, 1114112) AS r(i) "
    text += "WHERE NOT i BETWEEN 55296 AND 57343 AND a <> b ORDER BY i"
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        found = connection.execute(text).fetchall()
    return "".join(a for a, _ in found), "".join(b for _, b in found)
