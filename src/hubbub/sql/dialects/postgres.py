"""The dialect of PostgreSQL.

Differences to DuckDB, and how they are handled:

  TRY_CAST      casts are guarded by a range test; casts from text to other kinds are not supported
  IEEE 754      float8 arithmetic raises errors on overflow and on underflow to zero. Operands must have known bounds,
                so that nothing overflows; products and quotients of small numbers are scaled, and are 0 below 2⁻¹⁰⁰⁰
  % on doubles  integers are divided as integers; the remainder of fractions is not supported
  round         rounds half to even; rounding half away from zero is written explicitly
  text          all texts have the collation "C" and are compared byte by byte; case follows `dialects.case`
  SEMI, ANTI    EXISTS, NOT EXISTS

Tested in tests/sql/test_postgres_functions.py.
"""

from collections.abc import Mapping
from typing import ClassVar

from hubbub.sql.dialects.base import COMMON_SPELLINGS, Spelling, infix
from hubbub.sql.dialects.postgres_arithmetic import ARITHMETIC
from hubbub.sql.dialects.postgres_casts import CASTS
from hubbub.sql.dialects.postgres_syntax import PostgresSyntax


class PostgresDialect(PostgresSyntax):
    """PostgreSQL 14 and later, with a database in UTF-8."""

    spellings: ClassVar[Mapping[str, Spelling]] = {
        **COMMON_SPELLINGS,
        **ARITHMETIC,
        **CASTS,
        "is_distinct": infix("IS DISTINCT FROM"),
    }


POSTGRES = PostgresDialect()
