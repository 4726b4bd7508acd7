"""JSON in pieces: a large value is read or written without keeping every other thread from running.

Python's own reader and writer of JSON work on the whole value in one step, during which no other thread runs: for the
largest release that is several seconds, in which a server answers nobody. Here each step is short, and between two of
them the thread looks whether its work is still wanted (`patience`).
"""

import json
from collections.abc import Callable, Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from hubbub.core import deadline as patience

#: Values of a list that are written, and read, in one step.
_STEP = 2000
#: Bytes that are read in one step.
_SMALL = 1 << 16

_scan: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


def dumps(value: object, *, sort_keys: bool = False) -> str:
    """Write JSON without spaces, as `json.dumps` does; NaN is refused.

    >>> dumps({"b": [1, None, "ε"], "a": {}}, sort_keys=True)
    '{"a":{},"b":[1,null,"ε"]}'
    """
    return "".join(_written(value, sort_keys=sort_keys))


def loads(stored: bytes) -> Any:
    """Read JSON, as `json.loads` does."""
    if len(stored) > _SMALL:
        text = stored.decode()
        try:
            found, end = _value(text, 0)
            if end == len(text):
                return found
        except (ValueError, IndexError, StopIteration):
            pass  # it has spaces, or is not JSON
    return json.loads(stored)


def _write(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _written(value: object, *, sort_keys: bool) -> Iterator[str]:
    if isinstance(value, dict) and value and all(isinstance(name, str) for name in value):
        for place, name in enumerate(sorted(value) if sort_keys else value):
            yield f"{',' if place else '{'}{_write(name)}:"
            yield from _written(value[name], sort_keys=sort_keys)
        yield "}"
    elif isinstance(value, list | tuple) and any(isinstance(each, dict | list | tuple) for each in value):
        for place, each in enumerate(value):
            if place % _STEP == 0:
                patience.check()
            yield "," if place else "["
            yield from _written(each, sort_keys=sort_keys)
        yield "]"
    elif isinstance(value, list | tuple) and len(value) > _STEP:
        for start in range(0, len(value), _STEP):
            patience.check()
            yield ("," if start else "[") + _write(value[start : start + _STEP])[1:-1]
        yield "]"
    else:
        yield _write(value)


def _value(text: str, place: int) -> tuple[Any, int]:
    """Read the value that begins at a place, and say where it ends."""
    if text.startswith(("{}", "[]"), place):
        return ({} if text[place] == "{" else []), place + 2
    if text[place] == "{":
        return _object(text, place)
    if text[place] == "[":
        return _list(text, place)
    return _scan(text, place)


def _object(text: str, place: int) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    while True:
        if text[place + 1] != '"':
            raise ValueError("no name")
        name, place = scanstring(text, place + 2)
        if text[place] != ":":
            raise ValueError("no value")
        found[name], place = _value(text, place + 1)
        if text[place] != ",":
            return found, _end(text, place, "}")


def _list(text: str, place: int) -> tuple[list[Any], int]:
    found: list[Any] = []
    while True:
        if len(found) % _STEP == 0:
            patience.check()
        each, place = _value(text, place + 1) if text[place + 1] in "{[" else _scan(text, place + 1)
        found.append(each)
        if text[place] != ",":
            return found, _end(text, place, "]")


def _end(text: str, place: int, end: str) -> int:
    if text[place] != end:
        raise ValueError("no end")
    return place + 1
