"""LIKE patterns as regular expressions, for an engine that would try all ways to match them.

Tested in tests/sql/test_spark_functions.py.
"""

from hubbub.sql.dialects.base import word
from hubbub.sql.expressions import FunctionCall


def _sign(sign: str | None) -> str:
    """Write one character of a LIKE pattern as a regular expression; None is any character."""
    return "." if sign is None else f"\\{sign}" if not sign.isalnum() and sign.isascii() else sign


def like_parts(call: FunctionCall) -> list[list[str | None]]:
    """Split a LIKE pattern at its % signs into characters; None is any character."""
    pattern, escape = word(call.args[1]), word(call.args[2]) if len(call.args) > 2 else None
    parts, signs = [list[str | None]()], iter(pattern)
    for sign in signs:
        if sign == escape:
            parts[-1].append(next(signs))
        elif sign == "%":
            parts.append([])
        else:
            parts[-1].append(None if sign == "_" else sign)
    return [parts[0], *(part for part in parts[1:-1] if part), *parts[-1:]] if len(parts) > 1 else parts


def like_pattern(parts: list[list[str | None]]) -> str:
    """Write a LIKE pattern with several % as a regular expression without backtracking, in linear time.

    Spark turns each % into `.*`, and Java tries all combinations. The leftmost match of each part is as good as any
    other, so each part is an atomic group.
    """
    first, *middle, last = ("".join(map(_sign, part)) for part in parts)
    return rf"(?s)\A{first}{''.join(f'(?>.*?{part})' for part in middle)}" + (rf".*{last}\z" if last else "")
