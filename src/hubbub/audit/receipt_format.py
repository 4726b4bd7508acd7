"""Check the format of a receipt: the type and range of every field, before anything is derived from them.

A receipt may be forged. Python would accept −1 as a count, True as 1 and "1e3" as a fraction, and JSON allows duplicate
names; here each field has one type, one range and one spelling. Like the checker, this file imports nothing from the
rest of hubbub but other files of the checker.
"""

import json
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from fractions import Fraction
from math import isfinite
from typing import Any, NoReturn

from hubbub.audit import long_answer

#: Larger than every sensitivity, count or sequence that hubbub writes, and small enough to compute with.
_LARGEST = 10**30
_STORED = 2**62  # larger than every number that a ledger stores
_LONGEST = 2000  # characters of a fraction
_MOST_KEYS = 10**4  # groups of one unit that a checker goes through one by one
_FRACTION = re.compile(r"(0|[1-9][0-9]*)(/[1-9][0-9]*)?", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)

Check = Callable[[object, str], None]


class FormatError(Exception):
    """A field is malformed; the text says which."""


def parse_json(text: str) -> object:
    """Read unambiguous JSON: no duplicate names, no NaN, no excessive nesting."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_constant)
    except RecursionError:
        raise ValueError("The document is nested too deeply.") from None


def check_receipt(paper: object) -> None:
    """Check the format of a receipt of a query or of an analysis."""
    special = [each for each in _KINDS if isinstance(paper, dict) and each in paper]
    kind = _KINDS[special[0]] if special else _QUERY
    optional: dict[str, Check] = {"declared": _hash, "wording": _integer(2), "left_out": _left_out, "rows": _integer(0)}
    optional |= {} if kind is _ANALYSIS else {"after": _text}
    optional |= {"measured": _MEASURED} if kind in (_QUERY, _ANALYSIS) else {}
    compared = kind is _ANALYSIS and isinstance(paper, dict) and paper["analysis"] == "compare"
    _record(kind, optional=optional | ({"session": _integer(1, _STORED)} if compared else {}))(paper, "receipt")
    assert isinstance(paper, dict)  # noqa: S101 - for the type checker
    # answers of a session and derived answers name the charges that paid for them; all others have draws and a cost
    named = "session" in paper or "derived" in paper
    free = (not paper["event"]["parts"], Fraction(paper["charge"]["epsilon"]) == 0, named)
    if len(set(free)) != 1:
        _refuse("receipt.event.parts", "is not a list of at least 1.")


def check_answer(value: object) -> None:
    """Check the format of an answer: columns of equal length whose cells have the type of the column."""
    if isinstance(value, dict) and "form" in value:
        _long_answer(value)
        return
    _record({"columns": _list(_column), "ratio": _list(_optional(_real))}, optional={"model": _object})(value, "answer")
    assert isinstance(value, dict)  # noqa: S101 - for the type checker
    rows = len(value["ratio"])
    for column in value["columns"]:
        joint, sampling = column.get("joint", {"low": [], "high": []}), column.get("sampling")
        lists = [column["values"], column["low"], column["high"], *(joint.values() if "joint" in column else ())]
        if any(each is not None and len(each) != rows for each in [*lists, (sampling or {}).get("values")]):
            _refuse("answer.columns", "has a part of a different length than the answer.")
        ends = [(column["low"] or (), column["high"] or ()), (joint["low"], joint["high"])]
        for low, high in (pair for lows, highs in ends for pair in zip(lows, highs, strict=False)):
            if low is not None and high is not None and not low <= high:
                _refuse("answer.columns", "has an interval whose lower end exceeds its upper end.")


def _long_answer(value: dict[str, Any]) -> None:
    """Check an answer whose cells are in a Parquet file."""
    part = _list(_one_of(*long_answer.PARTS), least=1)
    kind = _one_of(*long_answer.KINDS)
    column = _record({"name": _text, "kind": kind, "parts": part}, optional={"at_most": _flag})
    fields = {"form": _one_of("parquet 1"), "rows": _integer(0), "columns": _list(column), "parquet": _text}
    _record(fields, optional={"model": _object})(value, "answer")
    problem = long_answer.problem(value)
    if problem is not None:
        _refuse("answer.parquet", problem)


def _left_out(value: object, where: str) -> None:
    """Check what a receipt states about its bounds. It has no effect on the privacy loss."""
    share = _optional(_record({"value": _real, "low": _real, "high": _real}))
    clamp = _record({"column": _name, "low": _text, "high": _text, "share": share})
    evidence = {"charge": _integer(0), "older": _flag, "level": _optional(_integer(1)), "above": _integer(0)}
    bound = _optional(_integer(1))
    _record(
        {"dataset": _name, "counts": _one_of("rows", "units"), "by": _optional(_text)},
        optional={
            "unit": _name,
            "groups": bound,
            "rows": bound,
            "maximum": bound,
            "joined": bound,
            "rows_total": bound,
            "total": _real,
            "filtered": _flag,
            "clamped": _list(clamp),
            "share": share,
            "evidence": _record(evidence),
            "owners": _list(_name, least=2),
            "per_node": _one_of("triangles", "edges"),
            "unlisted": _list(_name, least=1),
            "ungrouped": _list(_name, least=1),
            "null_keys": _list(_name, least=1),
            "fills_null": _flag,
        },
    )(value, where)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("A name is duplicated.")
    return fields


def _constant(_: str) -> NoReturn:
    raise ValueError("NaN and Infinity are not valid JSON.")


def _refuse(where: str, why: str) -> NoReturn:
    raise FormatError(f"{where} {why}")


def _record(fields: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    """Accept an object with exactly these fields."""
    more = optional or {}

    def check(value: object, where: str) -> None:
        if not isinstance(value, dict):
            _refuse(where, "is not an object.")
        if not fields.keys() <= value.keys() <= fields.keys() | more.keys():
            _refuse(where, "has missing or unknown fields.")
        for name, content in value.items():
            (fields.get(name) or more[name])(content, f"{where}.{name}")

    return check


def _true(value: object, where: str) -> None:
    if value is not True:
        _refuse(where, "is not true.")


def _list(item: Check, *, least: int = 0) -> Check:
    def check(value: object, where: str) -> None:
        if not isinstance(value, list) or len(value) < least:
            _refuse(where, "is not a list." if least == 0 else f"is not a list of at least {least}.")
        for content in value:
            item(content, where)

    return check


def _optional(item: Check) -> Check:
    def check(value: object, where: str) -> None:
        if value is not None:
            item(value, where)

    return check


def _integer(low: int, high: int = _LARGEST) -> Check:
    def check(value: object, where: str) -> None:
        if type(value) is not int or not low <= value <= high:  # a bool is an int to isinstance
            _refuse(where, f"is not an integer of at least {low}." if low >= 0 else "is not an integer.")

    return check


def _fraction(*, zero: bool = False, most: Fraction | None = None) -> Check:
    """Accept a fraction in lowest terms, as Python writes it."""

    def check(value: object, where: str) -> None:
        if not isinstance(value, str) or len(value) > _LONGEST or not _FRACTION.fullmatch(value):
            _refuse(where, "is not an exact number.")
        number = Fraction(value)
        if str(number) != value or (number == 0 and not zero) or (most is not None and not number <= most):
            _refuse(where, "is not an exact number in its range.")

    return check


def _signed(value: object, where: str) -> None:
    """Accept a fraction in lowest terms with either sign."""
    bare = value.removeprefix("-") if isinstance(value, str) else value
    _fraction(zero=bare == value)(bare, where)


def _term(value: object, where: str) -> None:
    """Accept a view, the place of a sum in its source, and a weight."""
    if not isinstance(value, list) or len(value) != 3:
        _refuse(where, "is not a view, a place and a weight.")
    _integer(0)(value[0], where)
    _integer(0)(value[1], where)
    _signed(value[2], where)


def _cell_term(value: object, where: str) -> None:
    """Accept a source, the places of a sum and a cell in it, and a weight."""
    if not isinstance(value, list) or len(value) != 4:
        _refuse(where, "is not a source, two places and a weight.")
    for place in value[:3]:
        _integer(0)(place, where)
    _signed(value[3], where)


def _one_of(*values: str) -> Check:
    def check(value: object, where: str) -> None:
        if not isinstance(value, str) or value not in values:
            _refuse(where, "is not one of the allowed values.")

    return check


def _text(value: object, where: str) -> None:
    if not isinstance(value, str):
        _refuse(where, "is not a text.")


def _name(value: object, where: str) -> None:
    if not isinstance(value, str) or not value or not value.isprintable():
        _refuse(where, "is not a name.")


def _version(value: object, where: str) -> None:
    if not isinstance(value, str) or not re.fullmatch(r"[1-9][0-9]{0,18}(-[0-9a-f]{16})?", value, re.ASCII):
        _refuse(where, "is not a version.")


def _hash(value: object, where: str) -> None:
    if not isinstance(value, str) or not _HASH.fullmatch(value):
        _refuse(where, "is not a hash.")


def _flag(value: object, where: str) -> None:
    if not isinstance(value, bool):
        _refuse(where, "is neither true nor false.")


def _object(value: object, where: str) -> None:
    if not isinstance(value, dict):
        _refuse(where, "is not an object.")


def _real(value: object, where: str) -> None:
    if type(value) not in (int, float) or not isfinite(value):  # type: ignore[arg-type]
        _refuse(where, "is not a finite number.")


def _event(value: object, where: str) -> None:
    """Accept the facts of one mechanism."""
    kind = value.get("mechanism") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in _EVENTS:
        _refuse(where, "is not the event of a known mechanism.")
    _record({"mechanism": _text, **_EVENTS[kind]})(value, f"{where}.{kind}")


def _noise(value: object, where: str) -> None:
    if not isinstance(value, dict) or value.get("mechanism") not in ("laplace", "gaussian"):
        _refuse(where, "is not Laplace or Gaussian noise.")
    _event(value, where)


def _laplace(value: object, where: str) -> None:
    if not isinstance(value, dict) or value.get("mechanism") != "laplace":
        _refuse(where, "is not Laplace noise.")
    _event(value, where)


def _part(value: object, where: str) -> None:
    if not isinstance(value, list) or len(value) != 2:
        _refuse(where, "is not an event with its count.")
    _event(value[0], where)
    _integer(1)(value[1], f"{where}.count")


def _bounds(value: object, where: str) -> None:
    _list(_integer(-_LARGEST), least=2)(value, where)
    if not isinstance(value, list) or len(value) != 2 or not value[0] <= value[1]:
        _refuse(where, "is not a lower and an upper bound.")


def _draw(value: object, where: str) -> None:
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in _DRAWS:
        _refuse(where, "is a draw of unknown kind.")
    _record({"kind": _text, "what": _text, **_DRAWS[kind]})(value, f"{where}.{kind}")
    assert isinstance(value, dict)  # noqa: S101 - for the type checker
    if kind in ("threshold", "weights"):
        expected = "threshold" if kind == "threshold" or value["keys"] == 1 else "weightedthreshold"
        if value["noise"]["mechanism"] != expected:
            _refuse(f"{where}.{kind}.noise", "is not that of a threshold.")
    if kind == "selection" and (value["level"] is None) == (value["score"] == "quantile"):
        _refuse(f"{where}.{kind}.level", "must be set for quantiles, and only for them.")


def _column(value: object, where: str) -> None:
    _record(
        {
            "name": _text,
            "kind": _one_of(*_CELLS),
            "values": _list(_anything),
            "low": _optional(_list(_optional(_real))),
            "high": _optional(_list(_optional(_real))),
        },
        optional={
            "sampling": _record({"values": _list(_optional(_real)), "at_most": _flag}),
            "joint": _record({"low": _list(_optional(_real)), "high": _list(_optional(_real))}),
        },
    )(value, where)
    assert isinstance(value, dict)  # noqa: S101 - for the type checker
    _list(_optional(_CELLS[value["kind"]]))(value["values"], f"{where}.values")


def _anything(_: object, __: str) -> None:
    """Accept any value; the type of the column is checked later."""


def _dated(parse: Callable[[str], date]) -> Check:
    def check(value: object, where: str) -> None:
        try:
            if not isinstance(value, str) or parse(value).isoformat() != value:
                _refuse(where, "is not a date.")
        except ValueError:
            _refuse(where, "is not a date.")

    return check


_EVENTS: Mapping[str, Mapping[str, Check]] = {
    "laplace": {"sensitivity": _integer(1), "scale": _fraction()},
    "gaussian": {"sensitivity_squared": _integer(1), "variance": _fraction()},
    "selection": {
        "rule": _one_of("exponential", "permute_and_flip", "noisy_max"),
        "sensitivity": _integer(1),
        "monotone": _flag,
        "rate": _fraction(),
    },
    "response": {"answers": _integer(2), "epsilon": _fraction()},
    "flips": {"distance": _integer(1), "rate": _fraction()},
    "metric": {"sensitivity": _fraction(), "rate": _fraction(), "constant_normaliser": _flag},
    "sparsevector": {
        "sensitivity": _integer(1),
        "monotone": _flag,
        "threshold_scale": _fraction(),
        "query_scale": _fraction(),
        "hits": _integer(1),
    },
    "threshold": {"noise": _noise, "keys": _integer(1), "above": _integer(1)},
    "weightedthreshold": {
        "noise": _noise,
        "keys": _integer(1, _MOST_KEYS),
        "weight": _integer(1),
        "threshold": _integer(1),
    },
    "smooth": {"power": _integer(1, 64), "slide": _fraction(), "dilation": _fraction()},
    "binomial": {"sensitivity": _integer(1, 1 << 18), "coins": _integer(2, 1 << 18), "epsilon": _fraction()},
    "proposal": {"test": _laplace, "answer": _laplace, "margin": _integer(1)},
}
_DRAWS: Mapping[str, Mapping[str, Check]] = {
    "public": {},
    "levels": {"noise": _noise},
    "rest": {"noise": _noise},
    "sum": {"per": _one_of("unit", "row"), "adds": _bounds, "noise": _noise},
    "threshold": {"per": _one_of("unit"), "adds": _bounds, "threshold": _integer(1), "noise": _event},
    "weights": {
        "keys": _integer(1, _MOST_KEYS),
        "weight": _integer(1),
        "threshold": _integer(1),
        "noise": _event,
    },
    "selection": {
        "score": _one_of("quantile", "min", "max", "mode"),
        "picks": _list(_event, least=1),
        "level": _optional(_fraction(zero=True, most=Fraction(1))),
    },
    "quantiles": {
        "levels": _list(_fraction(zero=True, most=Fraction(1)), least=2),
        "picks": _list(_event, least=1),
    },
    "top": {"per": _one_of("unit", "row"), "picks": _list(_event, least=1)},
    "bound": {"parts": _integer(1), "picks": _list(_event, least=1)},
}
_CELLS: Mapping[str, Check] = {
    "real": _real,
    "integer": _integer(-_LARGEST),
    "boolean": _flag,
    "text": _text,
    "date": _dated(date.fromisoformat),
    "timestamp": _dated(datetime.fromisoformat),
}
_BLOCKS = _record({"by": _one_of("day", "week", "month", "year"), "ranges": _list(_list(_name, least=2), least=1)})
_ALSO: Mapping[str, Check] = {"others": _list(_name, least=1), "blocks": _BLOCKS}
_DATA = _record({"dataset": _name, "unit": _name, "version": _version}, optional=_ALSO)
_COMMON: Mapping[str, Check] = {
    "receipt": _integer(1, 1),
    "query": _text,
    "relation": _one_of("add_remove", "replace"),
    "answer": _hash,
    "data": _list(_DATA, least=1),
    "bounds": _optional(
        _record(
            {"groups": _integer(1), "rows": _integer(1)},
            optional={"auto": _true, "total": _integer(1), "owners": _integer(2, 2)},
        )
    ),
    "derivation": _list(_text),
    "event": _record({"mechanism": _one_of("together"), "parts": _list(_part)}),
    "charge": _record({"epsilon": _fraction(zero=True), "delta": _fraction(zero=True, most=Fraction(1, 2))}),
    "ledger": _list(
        _record(
            {
                "dataset": _name,
                "sequence": _integer(1, _STORED),
                "hash": _hash,
                "policy": _hash,
                "time": _integer(0, _STORED),
            }
        ),
        least=1,
    ),
}
_QUERY: Mapping[str, Check] = {
    **_COMMON,
    "cells": _list(_optional(_integer(1)), least=1),
    "draws": _list(_draw, least=1),
}
_ANALYSIS: Mapping[str, Check] = {**_COMMON, "analysis": _name}
#: Several queries that are charged together: each with the tables that it reads, and a share of the charge.
_QUERIES: Mapping[str, Check] = {
    **_COMMON,
    "queries": _list(
        _record(
            {
                "data": _list(_name, least=1),
                "bounds": _COMMON["bounds"],
                "cells": _QUERY["cells"],
                "draws": _QUERY["draws"],
                "event": _COMMON["event"],
                "charge": _COMMON["charge"],
            }
        ),
        least=2,
    ),
}
_KEY = {"of": _text, "values": _list(_anything), "null": _flag, "whole": _flag}
_CELLS_OF = _record({"keys": _list(_record(_KEY))}, optional={"kept": _list(_integer(0))})
#: What the noisy sums of a query or of a cube mean.
_MEASURED = _record(
    {
        "form": _integer(1, 2),
        "of": _text,
        "where": _list(_text),
        "given": _list(_optional(_integer(1))),
        "bounds": _COMMON["bounds"],
        "measures": _list(_object, least=1),
        "tables": _hash,
        "public": _object,
        "sums": _list(_list(_integer(-_LARGEST)), least=1),
    },
    optional={"noises": _list(_list(_object, least=1), least=1), "shared": _flag, "sets": _list(_CELLS_OF, least=1)}
    | {"columns": _list(_record({**_KEY, "scales": _list(_integer(1))}), least=1), "order": _integer(1, 4)},
)
#: One measure as weighted sums over cells of overlapping releases.
_SOLVED = _record(
    {
        "columns": _list(_record({"of": _text, "values": _list(_anything, least=1)})),
        "rows": _list(_list(_cell_term, least=1), least=1),
    }
)
#: An answer that follows from earlier releases.
_DERIVED: Mapping[str, Check] = {
    **_COMMON,
    "derived": _record(
        {
            "form": _integer(1, 1),
            "exact": _flag,
            "of": _text,
            "where": _list(_text),
            "groups": _CELLS_OF,
            "wanted": _list(_object, least=1),
            "sources": _list(_record({"charge": _integer(1, _STORED), "hash": _hash, "measured": _hash}), least=1),
            "views": _list(_record({"source": _integer(0), "set": _integer(0), "cells": _list(_integer(-1))})),
            "measures": _list(_list(_term), least=1),
            "solved": _list(_optional(_SOLVED), least=1),
            "sums": _list(_list(_signed), least=1),
        }
    ),
}
_KINDS: Mapping[str, Mapping[str, Check]] = {"analysis": _ANALYSIS, "queries": _QUERIES, "derived": _DERIVED}
