"""The form of a receipt: every field with the values that it can have, before anything is derived from them.

A receipt comes from somebody who may want it to be believed. Python would take −1 for a count, True for 1 and "1e3" for
a fraction, and JSON lets a name stand twice; here each field has one type, one range and one way to be written. Like
the checker, this file imports nothing of the product.
"""

import json
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from fractions import Fraction
from math import isfinite
from typing import Any, NoReturn

#: Beyond every sensitivity, count or sequence that hubbub writes, and small enough to compute with.
_LARGEST = 10**30
_STORED = 2**62  # beyond every number that a ledger stores
_LONGEST = 2000  # characters of a fraction
_FRACTION = re.compile(r"(0|[1-9][0-9]*)(/[1-9][0-9]*)?", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)

Check = Callable[[object, str], None]


class FormError(Exception):
    """A field has not its form; the text says which."""


def read(text: str) -> object:
    """Read JSON that means one thing to everybody: no name twice, no NaN, no depth that breaks a reader."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def receipt(paper: object) -> None:
    """Check the form of a receipt, of a query or of an analysis."""
    kind = _ANALYSIS if isinstance(paper, dict) and "analysis" in paper else _QUERY
    _record(kind)(paper, "receipt")


def answer(value: object) -> None:
    """Check the form of an answer: columns of equal length whose cells have the column's kind."""
    _record({"columns": _list(_column), "ratio": _list(_maybe(_real))}, optional={"model": _object})(value, "answer")
    assert isinstance(value, dict)  # noqa: S101 - for the types: it has just been checked
    rows = len(value["ratio"])
    for column in value["columns"]:
        for part in ("values", "low", "high"):
            if column[part] is not None and len(column[part]) != rows:
                _refuse(f"answer.columns.{part}", "has another length than the answer")
        for low, high in zip(column["low"] or (), column["high"] or (), strict=False):
            if low is not None and high is not None and not low <= high:
                _refuse("answer.columns", "has an interval whose ends are the wrong way round")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a name stands twice")
    return fields


def _constant(_: str) -> NoReturn:
    raise ValueError("not a number of JSON")


def _refuse(where: str, why: str) -> NoReturn:
    raise FormError(f"{where} {why}")


def _record(fields: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    """Accept an object of exactly these fields."""
    more = optional or {}

    def check(value: object, where: str) -> None:
        if not isinstance(value, dict):
            _refuse(where, "is not an object")
        if not fields.keys() <= value.keys() <= fields.keys() | more.keys():
            _refuse(where, "has not the fields that it should have")
        for name, content in value.items():
            (fields.get(name) or more[name])(content, f"{where}.{name}")

    return check


def _list(item: Check, *, least: int = 0) -> Check:
    def check(value: object, where: str) -> None:
        if not isinstance(value, list) or len(value) < least:
            _refuse(where, "is not a list" if least == 0 else f"is not a list of {least} or more")
        for content in value:
            item(content, where)

    return check


def _maybe(item: Check) -> Check:
    def check(value: object, where: str) -> None:
        if value is not None:
            item(value, where)

    return check


def _whole(low: int, high: int = _LARGEST) -> Check:
    def check(value: object, where: str) -> None:
        if type(value) is not int or not low <= value <= high:  # a bool is an int to isinstance
            _refuse(where, f"is not a whole number of at least {low}" if low >= 0 else "is not a whole number")

    return check


def _fraction(*, zero: bool = False, most: Fraction | None = None) -> Check:
    """Accept an exact number in lowest terms, as Python writes one."""

    def check(value: object, where: str) -> None:
        if not isinstance(value, str) or len(value) > _LONGEST or not _FRACTION.fullmatch(value):
            _refuse(where, "is not an exact number")
        number = Fraction(value)
        if str(number) != value or (number == 0 and not zero) or (most is not None and not number <= most):
            _refuse(where, "is not an exact number in its range")

    return check


def _one_of(*values: str) -> Check:
    def check(value: object, where: str) -> None:
        if not isinstance(value, str) or value not in values:
            _refuse(where, "is none of the words that can stand there")

    return check


def _text(value: object, where: str) -> None:
    if not isinstance(value, str):
        _refuse(where, "is not text")


def _name(value: object, where: str) -> None:
    if not isinstance(value, str) or not value or not value.isprintable():
        _refuse(where, "is not a name")


def _version(value: object, where: str) -> None:
    if not isinstance(value, str) or not re.fullmatch(r"[1-9][0-9]{0,18}(-[0-9a-f]{16})?", value, re.ASCII):
        _refuse(where, "is not the name of a version")


def _hash(value: object, where: str) -> None:
    if not isinstance(value, str) or not _HASH.fullmatch(value):
        _refuse(where, "is not a hash")


def _flag(value: object, where: str) -> None:
    if not isinstance(value, bool):
        _refuse(where, "is neither true nor false")


def _object(value: object, where: str) -> None:
    if not isinstance(value, dict):
        _refuse(where, "is not an object")


def _real(value: object, where: str) -> None:
    if type(value) not in (int, float) or not isfinite(value):  # type: ignore[arg-type]
        _refuse(where, "is not a finite number")


def _event(value: object, where: str) -> None:
    """Accept the facts of one mechanism, each in its range."""
    kind = value.get("mechanism") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in _EVENTS:
        _refuse(where, "is not the event of a mechanism that this program knows")
    _record({"mechanism": _text, **_EVENTS[kind]})(value, f"{where}.{kind}")


def _noise(value: object, where: str) -> None:
    if not isinstance(value, dict) or value.get("mechanism") not in ("laplace", "gaussian"):
        _refuse(where, "is not noise on counts or sums")
    _event(value, where)


def _part(value: object, where: str) -> None:
    if not isinstance(value, list) or len(value) != 2:
        _refuse(where, "is not an event with its count")
    _event(value[0], where)
    _whole(1)(value[1], f"{where}.count")


def _ends(value: object, where: str) -> None:
    _list(_whole(-_LARGEST), least=2)(value, where)
    if not isinstance(value, list) or len(value) != 2 or not value[0] <= value[1]:
        _refuse(where, "is not a smallest and a largest number")


def _draw(value: object, where: str) -> None:
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in _DRAWS:
        _refuse(where, "is a draw of no known kind")
    _record({"kind": _text, "what": _text, **_DRAWS[kind]})(value, f"{where}.{kind}")
    assert isinstance(value, dict)  # noqa: S101 - for the types
    if kind == "threshold" and value["noise"]["mechanism"] != "threshold":
        _refuse(f"{where}.{kind}.noise", "is not that of a threshold")
    if kind == "selection" and (value["level"] is None) == (value["score"] == "quantile"):
        _refuse(f"{where}.{kind}.level", "belongs to quantiles, and to them alone")


def _column(value: object, where: str) -> None:
    _record(
        {
            "name": _text,
            "kind": _one_of(*_CELLS),
            "values": _list(_anything),
            "low": _maybe(_list(_maybe(_real))),
            "high": _maybe(_list(_maybe(_real))),
        }
    )(value, where)
    assert isinstance(value, dict)  # noqa: S101 - for the types
    _list(_maybe(_CELLS[value["kind"]]))(value["values"], f"{where}.values")


def _anything(_: object, __: str) -> None:
    """Accept; the kind of the column says more."""


def _dated(read: Callable[[str], date]) -> Check:
    def check(value: object, where: str) -> None:
        try:
            if not isinstance(value, str) or read(value).isoformat() != value:
                _refuse(where, "is not a date")
        except ValueError:
            _refuse(where, "is not a date")

    return check


_EVENTS: Mapping[str, Mapping[str, Check]] = {
    "laplace": {"sensitivity": _whole(1), "scale": _fraction()},
    "gaussian": {"sensitivity_squared": _whole(1), "variance": _fraction()},
    "selection": {"rule": _one_of("exponential"), "sensitivity": _whole(1), "monotone": _flag, "rate": _fraction()},
    "response": {"answers": _whole(2), "epsilon": _fraction()},
    "flips": {"distance": _whole(1), "rate": _fraction()},
    "metric": {"sensitivity": _fraction(), "rate": _fraction(), "constant_normaliser": _flag},
    "threshold": {"noise": _noise, "keys": _whole(1), "above": _whole(1)},
}
_DRAWS: Mapping[str, Mapping[str, Check]] = {
    "sum": {"per": _one_of("unit", "row"), "adds": _ends, "noise": _noise},
    "threshold": {"per": _one_of("unit"), "adds": _ends, "threshold": _whole(1), "noise": _event},
    "selection": {
        "score": _one_of("quantile", "min", "max", "mode"),
        "picks": _list(_event, least=1),
        "level": _maybe(_fraction(zero=True, most=Fraction(1))),
    },
    "top": {"per": _one_of("unit", "row"), "picks": _list(_event, least=1)},
}
_CELLS: Mapping[str, Check] = {
    "real": _real,
    "integer": _whole(-_LARGEST),
    "boolean": _flag,
    "text": _text,
    "date": _dated(date.fromisoformat),
    "timestamp": _dated(datetime.fromisoformat),
}
_COMMON: Mapping[str, Check] = {
    "receipt": _whole(1, 1),
    "query": _text,
    "relation": _one_of("add_remove", "replace"),
    "answer": _hash,
    "data": _list(_record({"dataset": _name, "unit": _name, "version": _version}), least=1),
    "bounds": _maybe(_record({"groups": _whole(1), "rows": _whole(1)})),
    "derivation": _list(_text),
    "event": _record({"mechanism": _one_of("together"), "parts": _list(_part, least=1)}),
    "charge": _record({"epsilon": _fraction(), "delta": _fraction(zero=True, most=Fraction(1, 2))}),
    "ledger": _list(
        _record(
            {
                "dataset": _name,
                "sequence": _whole(1, _STORED),
                "hash": _hash,
                "policy": _hash,
                "time": _whole(0, _STORED),
            }
        ),
        least=1,
    ),
}
_QUERY: Mapping[str, Check] = {**_COMMON, "cells": _list(_maybe(_whole(1)), least=1), "draws": _list(_draw, least=1)}
_ANALYSIS: Mapping[str, Check] = {**_COMMON, "analysis": _name}
