"""The text of a query: positions in it for error messages, and safe quoting of its words.

Tested in tests/sql/test_parse.py and tests/sql/test_refusals.py.
"""

from sqlglot import exp

from hubbub.errors import QueryError


def quote(text: str) -> str:
    """Quote an analyst's words in a message, shortened and without unprintable characters.

    >>> quote("a" * 100)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…'"
    """
    shown = text if len(text) <= 40 else text[:40] + "…"
    return "'" + "".join(c if c.isprintable() else "�" for c in shown) + "'"


class SourceText:
    """A query's text, which can locate a syntax node in it."""

    def __init__(self, text: str) -> None:
        self.text = text

    def position(self, at: exp.Expr | int | None) -> tuple[int, int] | None:
        """Return line and column of an offset, or of the first word of a node."""
        offset = self.offset(at) if isinstance(at, exp.Expr) else at
        if offset is None:
            return None
        before = self.text[:offset]
        return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1

    @staticmethod
    def offset(node: exp.Expr) -> int | None:
        """Return the offset at which a node starts; if it has none, that of its nearest ancestor that has one."""
        current: exp.Expr | None = node
        while current is not None:
            known = [start for n in current.walk() if (start := n.meta.get("start")) is not None]
            if known:
                return int(min(known))
            current = current.parent
        return None

    def error(self, at: exp.Expr | int | None, code: str, message: str, remedy: str) -> QueryError:
        """Build the error for a place in the text."""
        return QueryError(code, message, remedy, self.position(at))
