"""PostgreSQL's words.

What it lacks, and what is done about it:

  TRY_CAST      casts are guarded by a test of the range; casts of text to other kinds are refused
  IEEE          float8 arithmetic raises on overflow, and on underflow to zero. Operands must have known bounds, so that
                nothing can overflow; products and quotients of small numbers are scaled, and are 0 below 2⁻¹⁰⁰⁰
  % on doubles  whole numbers are divided as integers; of broken numbers it is refused
  round         is half to even there: rounding half away from zero is written out
  text          every text is compared under the collation "C", byte by byte; case is that of `dialects.case`
  structures    a discovered cell is carried in several columns
  SEMI, ANTI    EXISTS, NOT EXISTS
"""

from collections.abc import Mapping
from typing import ClassVar

from hubbub.sql.dialects.base import COMMON, Spelling, infix
from hubbub.sql.dialects.postgres_arithmetic import ARITHMETIC
from hubbub.sql.dialects.postgres_casts import CASTS
from hubbub.sql.dialects.postgres_words import Words


class Postgres(Words):
    """PostgreSQL 14 and later, with a database in UTF-8."""

    spellings: ClassVar[Mapping[str, Spelling]] = {
        **COMMON,
        **ARITHMETIC,
        **CASTS,
        "is_distinct": infix("IS DISTINCT FROM"),
    }


POSTGRES = Postgres()
