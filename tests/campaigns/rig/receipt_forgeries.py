"""Forge receipts: change numbers; drop, duplicate or swap parts; then recompute the public hashes.

A mutation changes a document so that it makes another claim. Afterwards the hash of the answer is recomputed, so that
only the receipt checker or a ledger can detect the change.
"""

import copy
import json
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from hashlib import sha256
from typing import Any

Document = dict[str, Any]
Path = tuple[str | int, ...]

_WORDS = (
    "laplace",
    "gaussian",
    "selection",
    "response",
    "flips",
    "metric",
    "threshold",
    "together",
    "sparsevector",
    "exponential",
    "permute_and_flip",
    "noisy_max",
    "add_remove",
    "replace",
    "unit",
    "row",
    "sum",
    "top",
    "min",
    "max",
    "mode",
    "quantile",
)


def canonical(value: object) -> str:
    """Write JSON in its hashed form, independently of the product."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def rehashed(document: Document) -> Document:
    """Recompute the hash of the answer, if the answer can be written as JSON."""
    try:
        document["receipt"]["answer"] = sha256(canonical(document["answer"]).encode()).hexdigest()
    except (ValueError, KeyError, TypeError, RecursionError):
        return document
    return document


def leaves(value: object, path: Path = ()) -> Iterator[Path]:
    """Yield the path of every value that is not a list or an object."""
    if isinstance(value, dict | list):
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*path, name))
    else:
        yield path


def branches(value: object, path: Path = ()) -> Iterator[Path]:
    """Yield the path of every list and object."""
    if isinstance(value, dict | list):
        yield path
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from branches(inner, (*path, name))


def at(document: Any, path: Path) -> Any:
    """Return the value at a path."""
    for step in path:
        document = document[step]
    return document


def put(document: Any, path: Path, value: object) -> None:
    """Replace the value at a path."""
    at(document, path[:-1])[path[-1]] = value


def _number(value: float, chance: random.Random) -> object:
    near: tuple[object, ...] = (
        value + 1,
        value - 1,
        -value,
        0,
        -1,
        value * 2,
        value / 2,
        10**18,
        10**400,
        -(10**30),
        float(value),
        str(value),
        True,
        False,
        None,
        [value],
        1e308,
    )
    return chance.choice(near)


def _fraction(text: str, chance: random.Random) -> object:
    value = Fraction(text)
    near: tuple[object, ...] = (
        str(value + 1),
        str(value - 1),
        str(-value),
        "0",
        "-1",
        str(value * 2),
        str(value / 2),
        str(value / 10**9),
        str(value * 10**9),
        "1e9",
        "1e-9",
        " 1",
        "1_0",
        "+1",
        "2/4",
        "1/0",
        "inf",
        "nan",
        "",
        "1" * 3000,
        1,
        0.5,
        None,
        str(value * Fraction(10**9 + 1, 10**9)),
        f"{value.numerator * 2}/{value.denominator * 2}",
    )
    return chance.choice(near)


def _text(text: str, chance: random.Random) -> object:
    if text in _WORDS:
        return chance.choice([word for word in _WORDS if word != text])
    return chance.choice((text + " ", text[:-1], "", text.upper() + "x", 7, None, f"{text}\0"))


def change_a_value(document: Document, chance: random.Random) -> None:
    """Change one number, text or flag."""
    path = chance.choice(list(leaves(document)))
    value = at(document, path)
    if isinstance(value, bool):
        put(document, path, chance.choice((not value, int(value), None, str(value))))
    elif isinstance(value, int | float):
        put(document, path, _number(value, chance))
    elif isinstance(value, str):
        try:
            put(document, path, _fraction(value, chance))
        except (ValueError, ZeroDivisionError):
            put(document, path, _text(value, chance))
    else:
        put(document, path, chance.choice((0, 1, "", [], {}, False)))


def change_a_fact(document: Document, chance: random.Random) -> None:
    """Change one number of the event, the draws, the bounds, the cells or the charge."""
    facts = ("event", "draws", "bounds", "cells", "charge")
    paths = [path for path in leaves(document) if path[0] == "receipt" and path[1] in facts]
    path = chance.choice(paths)
    value = at(document, path)
    if isinstance(value, str):
        try:
            put(document, path, _fraction(value, chance))
        except (ValueError, ZeroDivisionError):
            put(document, path, _text(value, chance))
    else:
        put(document, path, _number(value or 0, chance))


def change_alike(document: Document, chance: random.Random) -> None:
    """Change a number wherever it occurs, in the draws and in the event: a consistent forgery."""
    paths = [path for path in leaves(document["receipt"]) if path[0] in ("event", "draws")]
    path = chance.choice(paths)
    old = at(document["receipt"], path)
    if isinstance(old, bool) or not isinstance(old, int | str):
        return
    try:
        new = _fraction(old, chance) if isinstance(old, str) else _number(old, chance)
    except (ValueError, ZeroDivisionError):
        new = _text(str(old), chance)
    for other in paths:
        if other[-1] == path[-1] and at(document["receipt"], other) == old:
            put(document["receipt"], other, new)


def move_parts(document: Document, chance: random.Random) -> None:
    """Drop, duplicate or swap elements of a list."""
    lists = [path for path in branches(document) if isinstance(at(document, path), list) and at(document, path)]
    parts = at(document, chance.choice(lists))
    place, other = chance.randrange(len(parts)), chance.randrange(len(parts))
    what = chance.choice(("drop", "double", "swap", "empty"))
    if what == "drop":
        del parts[place]
    elif what == "double":
        parts.insert(other, copy.deepcopy(parts[place]))
    elif what == "swap":
        parts[place], parts[other] = parts[other], parts[place]
    else:
        parts.clear()


def move_fields(document: Document, chance: random.Random) -> None:
    """Drop a field, add one, or copy another field into it."""
    objects = [path for path in branches(document) if isinstance(at(document, path), dict) and at(document, path)]
    fields = at(document, chance.choice(objects))
    name = chance.choice(sorted(fields))
    what = chance.choice(("drop", "add", "copy"))
    if what == "drop":
        del fields[name]
    elif what == "add":
        fields[chance.choice(("note", "Receipt", "count", ""))] = chance.choice((1, None, "trust me"))
    else:
        fields[name] = copy.deepcopy(fields[chance.choice(sorted(fields))])


def change_the_answer(document: Document, chance: random.Random) -> None:
    """Change a cell, an end of an interval, or narrow an interval."""
    column = chance.choice(document["answer"]["columns"])
    part = chance.choice([part for part in ("values", "low", "high") if column[part]] or ["values"])
    if not column[part]:
        return
    place = chance.randrange(len(column[part]))
    value = column[part][place]
    if isinstance(value, int | float) and not isinstance(value, bool):
        column[part][place] = chance.choice((value + 1, value - 1, value * 1.001 + 1e-9, -value, 0))
    elif isinstance(value, str):
        column[part][place] = value + "x"
    else:
        column[part][place] = 1


def negate_a_count(document: Document, chance: random.Random) -> None:
    """Set the count of a part below one and repeat the part, so that its loss would be subtracted."""
    parts = document["receipt"]["event"]["parts"]
    event, count = chance.choice(parts)
    parts.append([copy.deepcopy(event), chance.choice((-count, 0, -1, -(10**9)))])


MUTATIONS: tuple[Callable[[Document, random.Random], None], ...] = (
    change_a_value,
    change_a_fact,
    change_a_fact,
    change_alike,
    move_parts,
    move_fields,
    change_the_answer,
    negate_a_count,
)


def forge(document: Document, chance: random.Random) -> tuple[Document, str]:
    """Return a forged document with valid public hashes, and the name of the mutation."""
    while True:
        made = copy.deepcopy(document)
        mutation = chance.choice(MUTATIONS)
        mutation(made, chance)
        if isinstance(made.get("receipt"), dict) and chance.random() < 0.9:
            rehashed(made)
        if not alike(made, document):
            return made, mutation.__name__


def alike(one: object, other: object) -> bool:
    """Return whether two documents are equal, distinguishing 1, 1.0 and True."""
    try:
        return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    except (TypeError, ValueError):
        return False
