r"""Regular expressions that take time in proportion to the text: a subset of RE2's syntax, checked before the charge.

Allowed are characters, `.`, classes such as `[a-z0-9]` and `\d`, `^`, `$`, `|`, groups, and the quantifiers `*`, `+`,
`?`, `{n}` and `{n,m}` after one character or class. A quantifier after a group, back-references, look-around and flags
are not allowed.

Tested in tests/sql/test_patterns.py.
"""

import re

MAX_PATTERN = 200
MAX_REPEATS = 50
RULES = (
    f"has at most {MAX_PATTERN} characters: text, ., [a-z], \\d, \\w, \\s, ^, $, |, (groups), and *, +, ?, "
    f"{{n,m}} up to {MAX_REPEATS} after a character or class, not after a group"
)

_ESCAPE = r"\\[dDwWsS]|\\[-\\.^$|?*+()\[\]{}/]"
_CLASS = rf"\[\^?(?:{_ESCAPE}|[^\[\]\\^-](?:-[^\[\]\\^-])?)+\]"
_ATOM = re.compile(rf"{_ESCAPE}|{_CLASS}|[^\\.^$|?*+()\[\]{{}}]|\.")
_QUANTIFIER = re.compile(r"[*+?]|\{(\d{1,2})(?:,(\d{1,2})?)?\}")


def size_of(pattern: str) -> int | None:
    """Return the number of states of a pattern, which bounds the work for each character of a text; None: refused.

    >>> size_of("^ab{2,3}c$"), size_of("(a+)+"), size_of("(?i)a"), size_of("[z-a]")
    (8, None, None, None)
    """
    if not pattern or len(pattern) > MAX_PATTERN:
        return None
    place, states, depth = 0, 1, 0
    while place < len(pattern):
        sign = pattern[place]
        if sign in "()":
            depth += 1 if sign == "(" else -1
            follows = pattern[place + 1 : place + 2]
            if depth < 0 or (follows and follows in "?*+{"):
                return None
        if sign in "^$|()":
            place, states = place + 1, states + 1
            continue
        atom = _ATOM.match(pattern, place)
        if atom is None or not _is_ordered(atom[0]):
            return None
        place = atom.end()
        repeats = _QUANTIFIER.match(pattern, place)
        if repeats is not None:
            place, times = repeats.end(), int(repeats[2] or repeats[1] or 1)
            if (
                times > MAX_REPEATS
                or int(repeats[1] or 0) > times
                or pattern[place : place + 1] in ("?", "*", "+", "{")
            ):
                return None
            states += times
        else:
            states += 1
    return states if depth == 0 else None


#: Maximum number of steps of an engine that backtracks: of all ways to match a text, each of which it may try.
MAX_ATTEMPTS = 1 << 20
NO_COMPLEMENT = r"\D, \W and \S between the brackets of a class are not supported"
REWRITE_COMPLEMENT = "Write the class with ^, as in [^0-9]."
_NAMED = {"d": "0-9", "w": "0-9A-Za-z_", "s": "\t\n\f\r "}


def translated(pattern: str, *, start: str, end: str) -> str | None:
    r"""Write an accepted pattern for an engine with other classes, so that it means the same there; None: refused.

    Theorem (One meaning). Let the engine read characters, classes of characters and ranges by code point, non-capturing
    groups, | and quantifiers as POSIX does, and `start` and `end` as the ends of the text. Then the result matches a
    part of a text if and only if the pattern does in RE2.
    Proof    `.` is written as all but a line break, \d, \w and \s as the ASCII characters that they are in RE2, ^ and $
             as the ends of the text, and every other sign that is no letter or digit with a backslash. What remains are
             the operators above. Whether a part of a text matches does not depend on which match an engine prefers.
    Tested   tests/sql/test_patterns.py::test_a_translated_pattern_matches_as_in_duckdb

    >>> translated("^a.(b-|c)$", start="<", end=">")
    '<a[^\n](?:b\\-|c)>'
    """
    written = []
    for sign in re.finditer(rf"{_CLASS}|{_ESCAPE}|{_QUANTIFIER.pattern}|(?s:.)", pattern):
        text = sign[0]
        if text[0] == "[":
            if re.search(r"(?<!\\)(?:\\\\)*\\[DWS]", text):
                return None
            inner = re.sub(rf"({_ESCAPE})|(-)|(.)", _in_class, text[1:-1].removeprefix("^"), flags=re.DOTALL)
            written.append(f"[{'^' if text[1] == '^' else ''}{inner}]")
        elif text[0] == "\\" and text[1] in "dwsDWS":
            written.append(f"[{'^' if text[1].isupper() else ''}{_NAMED[text[1].lower()]}]")
        elif text[0] == "\\":
            written.append(text)
        elif text in (".", "^", "$", "("):
            written.append({".": "[^\n]", "^": start, "$": end, "(": "(?:"}[text])
        elif len(text) > 1 or text in "|)*+?" or text.isalnum() or not text.isascii() or text.isspace():
            written.append(text)
        else:
            written.append(f"\\{text}")
    return "".join(written)


def _in_class(sign: re.Match[str]) -> str:
    if sign[1]:
        return _NAMED.get(sign[1][1], sign[1])
    char = sign[0]
    return char if sign[2] or char.isalnum() or not char.isascii() or char.isspace() or char == "_" else f"\\{char}"


def attempts(pattern: str, length: int) -> int:
    """Bound the steps of an engine that tries all ways to match an accepted pattern with a text of this length.

    Theorem (Ways to match). An engine that backtracks takes at most this number of steps for each state.
    Proof    A way to match is a place to start (one if the pattern starts with ^ and has no |), for each quantifier how
             often its atom is repeated, and for each | whether it is taken: no group is repeated, so there are at most
             as many as the product. Ways that agree up to a state share the steps up to it.
    Tested   tests/sql/test_patterns.py::test_the_ways_to_match_are_those_that_backtracking_can_try
    """
    ways = 1 if pattern.startswith("^") and "|" not in pattern else length + 1
    bare = re.sub(rf"{_CLASS}|{_ESCAPE}", "a", pattern)
    for quantifier in _QUANTIFIER.finditer(bare):
        text = quantifier[0]
        if text in "*+" or text.endswith(",}"):
            ways *= length + 1
        elif text == "?":
            ways *= 2
        elif "," in text:
            ways *= int(quantifier[2]) - int(quantifier[1]) + 1
    return ways * (1 + bare.count("|")) * (size_of(pattern) or 1)


def parts_of_text(pattern: str) -> tuple[int, int] | None:
    """Return the least length of a match and the number of groups of a pattern whose matches all engines agree on.

    Theorem (Same parts of a text). Let an accepted pattern have no |. Then engines that prefer more repetitions of an
    earlier atom (RE2, Java) and those that prefer the longest match (PostgreSQL) find the same matches with the same
    groups.
    Proof    The pattern is a sequence of atoms, each with limits for its repetitions. Of two ways to match from one
             place, compare at each character the atom that takes it. In the way P that repeats earlier atoms most, no
             character is taken by a later atom than in another way Q: where Q would fall behind P, P could have gone on
             as Q does with more repetitions of that atom. So P lets every prefix of the pattern take most, also the
             whole of it: if Q took one more character, P could go on as Q does. The match, and the ends of its groups,
             are therefore the longest in any order of preference.
    Tested   tests/sql/test_patterns.py::test_parts_of_texts_are_the_same_for_engines_that_backtrack_and_for_longest
    """
    if size_of(pattern) is None or "|" in re.sub(rf"{_CLASS}|{_ESCAPE}", "a", pattern):
        return None
    least, bare = 0, re.sub(rf"{_CLASS}|{_ESCAPE}", "a", pattern)
    for atom in re.finditer(rf"([^^$()*+?{{}}])({_QUANTIFIER.pattern})?", bare):
        times = atom[2]
        least += 1 if times in (None, "+") else 0 if times in ("*", "?") else int(atom[3])
    return least, bare.count("(")


def _is_ordered(atom: str) -> bool:
    """Tell whether the ranges of a class go up, as engines require."""
    return all(low <= high for low, high in re.findall(r"([^\[\]\\^-])-([^\[\]\\^-])", atom))
