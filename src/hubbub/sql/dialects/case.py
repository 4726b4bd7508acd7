"""DuckDB's mapping between upper and lower case, one code point to one, for translation on other engines.

The functions lower and upper of other engines follow a collation: PostgreSQL's "C" maps only ASCII, ICU maps ß to SS.

Tested in tests/sql/test_postgres_functions.py.
"""

from functools import lru_cache
from typing import Literal

import duckdb

#: The characters that DuckDB's trim removes.
BLANKS = "".join(map(chr, (32, 160, 5760, *range(8192, 8203), 8239, 8287, 12288)))


@lru_cache(maxsize=2)
def simple_case(function: Literal["lower", "upper"]) -> tuple[str, str]:
    """Return the code points that the function changes, and their images, in the same order."""
    text = f"SELECT chr(i::INTEGER) AS a, {function}(chr(i::INTEGER)) AS b FROM range(1, 1114112) AS r(i) "
    text += "WHERE NOT i BETWEEN 55296 AND 57343 AND a <> b ORDER BY i"
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        rows = connection.execute(text).fetchall()
    return "".join(a for a, _ in rows), "".join(b for _, b in rows)
