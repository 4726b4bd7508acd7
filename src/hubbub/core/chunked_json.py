"""JSON parsing and serialization in short steps, so that large values do not block other threads.

Python's `json` module holds the GIL for a whole value: several seconds for the largest release, in which a server
cannot answer anybody. Here each step is short, and between steps the thread checks its deadline.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from hubbub.core import deadline

#: List items written or read in one step.
_STEP = 2000
#: Bytes parsed in one step.
_SMALL = 1 << 16

_LISTS = (list, tuple)  # a tuple of types is checked faster than a union
_NESTED = (dict, list, tuple)
_TEXT = frozenset({str})

#: Made once, because making an encoder takes longer than writing a short text.
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_SORTING = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True)
_scan: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


def dumps(value: object, *, sort_keys: bool = False) -> str:
    """Serialize to JSON without spaces, as `json.dumps` does; reject NaN.

    >>> dumps({"b": [1, None, "ε"], "a": {}}, sort_keys=True)
    '{"a":{},"b":[1,null,"ε"]}'
    """
    if _room(value, _STEP) >= 0:
        return (_SORTING if sort_keys else _ENCODER).encode(value)
    return "".join(_pieces(value, sort_keys=sort_keys))


def loads(stored: bytes) -> Any:
    """Parse JSON, as `json.loads` does."""
    if len(stored) > _SMALL:
        text = stored.decode()
        try:
            value, end = _value(text, 0)
            if end == len(text):
                return value
        except (ValueError, IndexError, StopIteration):
            pass  # it contains spaces, or is not JSON
    return json.loads(stored)


def _write(value: object) -> str:
    return _ENCODER.encode(value)


def _room(value: object, room: int) -> int:
    """Return how many of this number of items are left after those of a value; negative if it takes several steps."""
    items: Iterable[object] = ()
    if isinstance(value, dict):
        if not (_TEXT.issuperset(map(type, value)) or all(isinstance(name, str) for name in value)):
            return -1
        items = value.values()
    elif isinstance(value, _LISTS):
        items = value
    else:
        return room
    room -= len(value)
    for item in items if room >= 0 else ():
        if isinstance(item, _NESTED):
            room = _room(item, room)
            if room < 0:
                break
    return room


def _pieces(value: object, *, sort_keys: bool) -> Iterator[str]:
    if isinstance(value, dict) and value and all(isinstance(name, str) for name in value):
        for index, name in enumerate(sorted(value) if sort_keys else value):
            yield f"{',' if index else '{'}{_write(name)}:"
            yield from _pieces(value[name], sort_keys=sort_keys)
        yield "}"
    elif isinstance(value, list | tuple) and any(isinstance(item, dict | list | tuple) for item in value):
        for index, item in enumerate(value):
            if index % _STEP == 0:
                deadline.check()
            yield "," if index else "["
            yield from _pieces(item, sort_keys=sort_keys)
        yield "]"
    elif isinstance(value, list | tuple) and len(value) > _STEP:
        for start in range(0, len(value), _STEP):
            deadline.check()
            yield ("," if start else "[") + _write(value[start : start + _STEP])[1:-1]
        yield "]"
    else:
        yield _write(value)


def _value(text: str, start: int) -> tuple[Any, int]:
    """Parse the value that starts at an offset; return it and the offset of its end."""
    if text.startswith(("{}", "[]"), start):
        return ({} if text[start] == "{" else []), start + 2
    if text[start] == "{":
        return _object(text, start)
    if text[start] == "[":
        return _list(text, start)
    return _scan(text, start)


def _object(text: str, start: int) -> tuple[dict[str, Any], int]:
    values: dict[str, Any] = {}
    at = start
    while True:
        if text[at + 1] != '"':
            raise ValueError("no name")
        name, at = scanstring(text, at + 2)
        if text[at] != ":":
            raise ValueError("no value")
        values[name], at = _value(text, at + 1)
        if text[at] != ",":
            return values, _end(text, at, "}")


def _list(text: str, start: int) -> tuple[list[Any], int]:
    values: list[Any] = []
    at = start
    while True:
        if len(values) % _STEP == 0:
            deadline.check()
        value, at = _value(text, at + 1) if text[at + 1] in "{[" else _scan(text, at + 1)
        values.append(value)
        if text[at] != ",":
            return values, _end(text, at, "]")


def _end(text: str, at: int, end: str) -> int:
    if text[at] != end:
        raise ValueError("no end")
    return at + 1
