"""Check the format of a receipt: the type and range of every field, before anything is derived from them.

A receipt may be forged, so each field has one type, one range and one spelling (`receipt_fields`). Like the checker,
this file imports nothing from the rest of hubbub but other files of the checker.
"""

from collections.abc import Mapping
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from hubbub.audit import long_answer
from hubbub.audit import receipt_fields as field
from hubbub.audit.receipt_fields import Check

_MOST_KEYS = 10**4  # groups of one unit that a checker goes through one by one


def check_receipt(paper: object) -> None:
    """Check the format of a receipt of a query or of an analysis."""
    special = [each for each in _KINDS if isinstance(paper, dict) and each in paper]
    kind = _KINDS[special[0]] if special else _QUERY
    optional: dict[str, Check] = {
        "declared": field.hash_value,
        "wording": field.integer(2),
        "left_out": _left_out,
        "rows": field.integer(0),
        "disclosure": _disclosure,
    }
    optional |= {} if kind is _ANALYSIS else {"after": field.text}
    optional |= {"measured": _MEASURED} if kind in (_QUERY, _ANALYSIS) else {}
    compared = kind is _ANALYSIS and isinstance(paper, dict) and paper["analysis"] == "compare"
    field.record(kind, optional=optional | ({"session": field.integer(1, field.STORED)} if compared else {}))(
        paper, "receipt"
    )
    assert isinstance(paper, dict)  # noqa: S101 - for the type checker
    # answers of a session and derived answers name the charges that paid for them; all others have draws and a cost
    named = "session" in paper or "derived" in paper
    free = (not paper["event"]["parts"], Fraction(paper["charge"]["epsilon"]) == 0, named)
    if len(set(free)) != 1:
        field.refuse("receipt.event.parts", "is not a list of at least 1.")


def check_answer(value: object) -> None:
    """Check the format of an answer: columns of equal length whose cells have the type of the column."""
    if isinstance(value, dict) and "form" in value:
        _long_answer(value)
        return
    field.record(
        {"columns": field.list_of(_column), "ratio": field.list_of(field.optional(field.real))},
        optional={"model": field.any_object},
    )(value, "answer")
    assert isinstance(value, dict)  # noqa: S101 - for the type checker
    rows = len(value["ratio"])
    for column in value["columns"]:
        joint, sampling = column.get("joint", {"low": [], "high": []}), column.get("sampling")
        lists = [column["values"], column["low"], column["high"], *(joint.values() if "joint" in column else ())]
        if any(each is not None and len(each) != rows for each in [*lists, (sampling or {}).get("values")]):
            field.refuse("answer.columns", "has a part of a different length than the answer.")
        ends = [(column["low"] or (), column["high"] or ()), (joint["low"], joint["high"])]
        for low, high in (pair for lows, highs in ends for pair in zip(lows, highs, strict=False)):
            if low is not None and high is not None and not low <= high:
                field.refuse("answer.columns", "has an interval whose lower end exceeds its upper end.")


def _long_answer(value: dict[str, Any]) -> None:
    """Check an answer whose cells are in a Parquet file."""
    part = field.list_of(field.one_of(*long_answer.PARTS), least=1)
    kind = field.one_of(*long_answer.KINDS)
    column = field.record({"name": field.text, "kind": kind, "parts": part}, optional={"at_most": field.flag})
    fields = {
        "form": field.one_of("parquet 1"),
        "rows": field.integer(0),
        "columns": field.list_of(column),
        "parquet": field.text,
    }
    field.record(fields, optional={"model": field.any_object})(value, "answer")
    problem = long_answer.problem(value)
    if problem is not None:
        field.refuse("answer.parquet", problem)


def _left_out(value: object, where: str) -> None:
    """Check what a receipt states about its bounds. It has no effect on the privacy loss."""
    share = field.optional(field.record({"value": field.real, "low": field.real, "high": field.real}))
    clamp = field.record({"column": field.name, "low": field.text, "high": field.text, "share": share})
    evidence = {
        "charge": field.integer(0),
        "older": field.flag,
        "level": field.optional(field.integer(1)),
        "above": field.integer(0),
    }
    bound = field.optional(field.integer(1))
    field.record(
        {"dataset": field.name, "counts": field.one_of("rows", "units"), "by": field.optional(field.text)},
        optional={
            "unit": field.name,
            "groups": bound,
            "rows": bound,
            "maximum": bound,
            "joined": bound,
            "rows_total": bound,
            "total": field.real,
            "filtered": field.flag,
            "clamped": field.list_of(clamp),
            "share": share,
            "evidence": field.record(evidence),
            "owners": field.list_of(field.name, least=2),
            "per_node": field.one_of("triangles", "edges"),
            "unlisted": field.list_of(field.name, least=1),
            "ungrouped": field.list_of(field.name, least=1),
            "null_keys": field.list_of(field.name, least=1),
            "fills_null": field.flag,
        },
    )(value, where)


def _disclosure(value: object, where: str) -> None:
    """Check the owner's rules for small numbers and rounding."""
    rule: dict[str, Check] = {"suppress_below": field.integer(2), "round_to": field.integer(2)}
    field.record({}, optional=rule | {"round_by_noise": field.true})(value, where)


def _term(value: object, where: str) -> None:
    """Accept a view, the place of a sum in its source, and a weight."""
    if not isinstance(value, list) or len(value) != 3:
        field.refuse(where, "is not a view, a place and a weight.")
    field.integer(0)(value[0], where)
    field.integer(0)(value[1], where)
    field.signed(value[2], where)


def _cell_term(value: object, where: str) -> None:
    """Accept a source, the places of a sum and a cell in it, and a weight."""
    if not isinstance(value, list) or len(value) != 4:
        field.refuse(where, "is not a source, two places and a weight.")
    for place in value[:3]:
        field.integer(0)(place, where)
    field.signed(value[3], where)


def _event(value: object, where: str) -> None:
    """Accept the facts of one mechanism."""
    kind = value.get("mechanism") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in _EVENTS:
        field.refuse(where, "is not the event of a known mechanism.")
    field.record({"mechanism": field.text, **_EVENTS[kind]})(value, f"{where}.{kind}")


def _noise(value: object, where: str) -> None:
    if not isinstance(value, dict) or value.get("mechanism") not in ("laplace", "gaussian"):
        field.refuse(where, "is not Laplace or Gaussian noise.")
    _event(value, where)


def _laplace(value: object, where: str) -> None:
    if not isinstance(value, dict) or value.get("mechanism") != "laplace":
        field.refuse(where, "is not Laplace noise.")
    _event(value, where)


def _part(value: object, where: str) -> None:
    if not isinstance(value, list) or len(value) != 2:
        field.refuse(where, "is not an event with its count.")
    _event(value[0], where)
    field.integer(1)(value[1], f"{where}.count")


def _bounds(value: object, where: str) -> None:
    field.list_of(field.integer(-field.LARGEST), least=2)(value, where)
    if not isinstance(value, list) or len(value) != 2 or not value[0] <= value[1]:
        field.refuse(where, "is not a lower and an upper bound.")


def _draw(value: object, where: str) -> None:
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in _DRAWS:
        field.refuse(where, "is a draw of unknown kind.")
    field.record({"kind": field.text, "what": field.text, **_DRAWS[kind]})(value, f"{where}.{kind}")
    assert isinstance(value, dict)  # noqa: S101 - for the type checker
    if kind in ("threshold", "weights"):
        expected = "threshold" if kind == "threshold" or value["keys"] == 1 else "weightedthreshold"
        if value["noise"]["mechanism"] != expected:
            field.refuse(f"{where}.{kind}.noise", "is not that of a threshold.")
    if kind == "selection" and (value["level"] is None) == (value["score"] == "quantile"):
        field.refuse(f"{where}.{kind}.level", "must be set for quantiles, and only for them.")


def _column(value: object, where: str) -> None:
    field.record(
        {
            "name": field.text,
            "kind": field.one_of(*_CELLS),
            "values": field.list_of(field.anything),
            "low": field.optional(field.list_of(field.optional(field.real))),
            "high": field.optional(field.list_of(field.optional(field.real))),
        },
        optional={
            "sampling": field.record({"values": field.list_of(field.optional(field.real)), "at_most": field.flag}),
            "joint": field.record(
                {"low": field.list_of(field.optional(field.real)), "high": field.list_of(field.optional(field.real))}
            ),
        },
    )(value, where)
    assert isinstance(value, dict)  # noqa: S101 - for the type checker
    field.list_of(field.optional(_CELLS[value["kind"]]))(value["values"], f"{where}.values")


_EVENTS: Mapping[str, Mapping[str, Check]] = {
    "laplace": {"sensitivity": field.integer(1), "scale": field.fraction()},
    "gaussian": {"sensitivity_squared": field.integer(1), "variance": field.fraction()},
    "selection": {
        "rule": field.one_of("exponential", "permute_and_flip", "noisy_max"),
        "sensitivity": field.integer(1),
        "monotone": field.flag,
        "rate": field.fraction(),
    },
    "response": {"answers": field.integer(2), "epsilon": field.fraction()},
    "flips": {"distance": field.integer(1), "rate": field.fraction()},
    "metric": {"sensitivity": field.fraction(), "rate": field.fraction(), "constant_normaliser": field.flag},
    "sparsevector": {
        "sensitivity": field.integer(1),
        "monotone": field.flag,
        "threshold_scale": field.fraction(),
        "query_scale": field.fraction(),
        "hits": field.integer(1),
    },
    "threshold": {"noise": _noise, "keys": field.integer(1), "above": field.integer(1)},
    "weightedthreshold": {
        "noise": _noise,
        "keys": field.integer(1, _MOST_KEYS),
        "weight": field.integer(1),
        "threshold": field.integer(1),
    },
    "smooth": {"power": field.integer(1, 64), "slide": field.fraction(), "dilation": field.fraction()},
    "binomial": {
        "sensitivity": field.integer(1, 1 << 18),
        "coins": field.integer(2, 1 << 18),
        "epsilon": field.fraction(),
    },
    "proposal": {"test": _laplace, "answer": _laplace, "margin": field.integer(1)},
}
_DRAWS: Mapping[str, Mapping[str, Check]] = {
    "public": {},
    "levels": {"noise": _noise},
    "rest": {"noise": _noise},
    "sum": {"per": field.one_of("unit", "row"), "adds": _bounds, "noise": _noise},
    "threshold": {"per": field.one_of("unit"), "adds": _bounds, "threshold": field.integer(1), "noise": _event},
    "weights": {
        "keys": field.integer(1, _MOST_KEYS),
        "weight": field.integer(1),
        "threshold": field.integer(1),
        "noise": _event,
    },
    "selection": {
        "score": field.one_of("quantile", "min", "max", "mode"),
        "picks": field.list_of(_event, least=1),
        "level": field.optional(field.fraction(zero=True, most=Fraction(1))),
    },
    "quantiles": {
        "levels": field.list_of(field.fraction(zero=True, most=Fraction(1)), least=2),
        "picks": field.list_of(_event, least=1),
    },
    "top": {"per": field.one_of("unit", "row"), "picks": field.list_of(_event, least=1)},
    "bound": {"parts": field.integer(1), "picks": field.list_of(_event, least=1)},
}
_CELLS: Mapping[str, Check] = {
    "real": field.real,
    "integer": field.integer(-field.LARGEST),
    "boolean": field.flag,
    "text": field.text,
    "date": field.dated(date.fromisoformat),
    "timestamp": field.dated(datetime.fromisoformat),
}
_BLOCKS = field.record(
    {
        "by": field.one_of("day", "week", "month", "year"),
        "ranges": field.list_of(field.list_of(field.name, least=2), least=1),
    }
)
_ALSO: Mapping[str, Check] = {"others": field.list_of(field.name, least=1), "blocks": _BLOCKS}
_DATA = field.record({"dataset": field.name, "unit": field.name, "version": field.version}, optional=_ALSO)
_COMMON: Mapping[str, Check] = {
    "receipt": field.integer(1, 1),
    "query": field.text,
    "relation": field.one_of("add_remove", "replace"),
    "answer": field.hash_value,
    "data": field.list_of(_DATA, least=1),
    "bounds": field.optional(
        field.record(
            {"groups": field.integer(1), "rows": field.integer(1)},
            optional={"auto": field.true, "total": field.integer(1), "owners": field.integer(2, 2)},
        )
    ),
    "derivation": field.list_of(field.text),
    "event": field.record({"mechanism": field.one_of("together"), "parts": field.list_of(_part)}),
    "charge": field.record(
        {"epsilon": field.fraction(zero=True), "delta": field.fraction(zero=True, most=Fraction(1, 2))}
    ),
    "ledger": field.list_of(
        field.record(
            {
                "dataset": field.name,
                "sequence": field.integer(1, field.STORED),
                "hash": field.hash_value,
                "policy": field.hash_value,
                "time": field.integer(0, field.STORED),
            }
        ),
        least=1,
    ),
}
_QUERY: Mapping[str, Check] = {
    **_COMMON,
    "cells": field.list_of(field.optional(field.integer(1)), least=1),
    "draws": field.list_of(_draw, least=1),
}
_ANALYSIS: Mapping[str, Check] = {**_COMMON, "analysis": field.name}
#: Several queries that are charged together: each with the tables that it reads, and a share of the charge.
_QUERIES: Mapping[str, Check] = {
    **_COMMON,
    "queries": field.list_of(
        field.record(
            {
                "data": field.list_of(field.name, least=1),
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
_KEY = {"of": field.text, "values": field.list_of(field.anything), "null": field.flag, "whole": field.flag}
_CELLS_OF = field.record(
    {"keys": field.list_of(field.record(_KEY))}, optional={"kept": field.list_of(field.integer(0))}
)
#: What the noisy sums of a query or of a cube mean.
_MEASURED = field.record(
    {
        "form": field.integer(1, 2),
        "of": field.text,
        "where": field.list_of(field.text),
        "given": field.list_of(field.optional(field.integer(1))),
        "bounds": _COMMON["bounds"],
        "measures": field.list_of(field.any_object, least=1),
        "tables": field.hash_value,
        "public": field.any_object,
        "sums": field.list_of(field.list_of(field.integer(-field.LARGEST)), least=1),
    },
    optional={
        "noises": field.list_of(field.list_of(field.any_object, least=1), least=1),
        "shared": field.flag,
        "sets": field.list_of(_CELLS_OF, least=1),
    }
    | {
        "columns": field.list_of(field.record({**_KEY, "scales": field.list_of(field.integer(1))}), least=1),
        "order": field.integer(1, 4),
    },
)
#: One measure as weighted sums over cells of overlapping releases.
_SOLVED = field.record(
    {
        "columns": field.list_of(field.record({"of": field.text, "values": field.list_of(field.anything, least=1)})),
        "rows": field.list_of(field.list_of(_cell_term, least=1), least=1),
    }
)
#: An answer that follows from earlier releases.
_DERIVED: Mapping[str, Check] = {
    **_COMMON,
    "derived": field.record(
        {
            "form": field.integer(1, 1),
            "exact": field.flag,
            "of": field.text,
            "where": field.list_of(field.text),
            "groups": _CELLS_OF,
            "wanted": field.list_of(field.any_object, least=1),
            "sources": field.list_of(
                field.record(
                    {"charge": field.integer(1, field.STORED), "hash": field.hash_value, "measured": field.hash_value}
                ),
                least=1,
            ),
            "views": field.list_of(
                field.record(
                    {"source": field.integer(0), "set": field.integer(0), "cells": field.list_of(field.integer(-1))}
                )
            ),
            "measures": field.list_of(field.list_of(_term), least=1),
            "solved": field.list_of(field.optional(_SOLVED), least=1),
            "sums": field.list_of(field.list_of(field.signed), least=1),
        }
    ),
}
_KINDS: Mapping[str, Mapping[str, Check]] = {"analysis": _ANALYSIS, "queries": _QUERIES, "derived": _DERIVED}
