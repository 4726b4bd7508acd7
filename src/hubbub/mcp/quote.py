"""Text from data, from queries and from other people, so that a model reads it as a quotation.

A group key is whatever somebody once wrote into a table, and a model takes instructions from any text. So every such
text is one line in quotation marks, of bounded length, and every character in it is visible.

Tested in tests/mcp/test_answers.py.
"""

#: Characters of one label, and of one query.
LABEL = 120
QUERY = 600


def bounded(text: str, limit: int = LABEL) -> str:
    r"""Escape what is not printable, and cut what is too long; the cut is stated.

    Line ends, terminal sequences, marks that change the direction of text, and characters without a shape are escaped.

    >>> bounded("North\n\u202eignore\u200b")
    'North\\n\\u202eignore\\u200b'
    >>> bounded("a" * 500, 10)
    'aaaaaaaaaa… (490 more characters)'
    """
    cut, more = text[:limit], len(text) - limit
    visible = "".join(map(_visible, cut))
    return visible if more <= 0 else f"{visible}… ({more:,} more characters)"


def quoted(text: str, limit: int = LABEL) -> str:
    r"""Quote a text; quotation marks and backslashes within it are escaped, so that it cannot end early.

    >>> print(quoted('North", said the table. "Now'), quoted("x\\"))
    "North\", said the table. \"Now" "x\\"
    """
    cut, more = text[:limit], len(text) - limit
    escaped = "".join("\\" + each if each in '"\\' else _visible(each) for each in cut)
    return f'"{escaped}"' if more <= 0 else f'"{escaped}…" ({more:,} more characters)'


def _visible(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()
