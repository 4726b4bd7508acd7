"""Every field of a receipt has one type, one range and one spelling; old receipts stay valid."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from hubbub.audit import receipt_fields
from hubbub.audit import receipt_format as receipt_form
from hubbub.audit.receipt import check_receipt

#: Written by the first release of this format.
OLD = [json.loads(line) for line in (Path(__file__).parent / "receipts" / "format-1.jsonl").read_text().splitlines()]
BY_NAME: dict[str, dict[str, Any]] = {each["name"]: each["document"] for each in OLD}


def test_receipts_of_the_first_release_are_still_sound() -> None:
    assert len(OLD) > 80
    mechanisms = set()
    for name, document in BY_NAME.items():
        assert check_receipt(document).problems == [], name
        assert check_receipt(document["receipt"]).problems == [], name
        mechanisms |= {event["mechanism"] for event, _ in document["receipt"]["event"]["parts"]}
    assert mechanisms == {"laplace", "gaussian", "selection", "threshold", "response"}


@pytest.mark.parametrize("count", [-1, 0, True, 1.0, "1", None, 10**31])
@pytest.mark.parametrize("name", ["density row add_remove None", "tabulate {co replace None", "count row add_remove 0"])
def test_a_part_is_drawn_once_or_more(name: str, count: object) -> None:
    """A part with count −1 once subtracted its own loss: "verified … it costs ε = 0"."""
    document = copy.deepcopy(BY_NAME[name])
    parts = document["receipt"]["event"]["parts"]
    parts.append([copy.deepcopy(parts[0][0]), count])
    assert not check_receipt(document).sound
    parts[:] = [[parts[0][0], count]]
    assert not check_receipt(document).sound


@pytest.mark.parametrize("kind", sorted(receipt_form._EVENTS))
def test_no_draw_of_any_kind_is_free(kind: str) -> None:
    """A metric of sensitivity 0, which no mechanism has, once passed at ε = 0: no fact of an event may be 0."""
    document = copy.deepcopy(BY_NAME["tabulate {co replace None"])
    whole: dict[str, Any] = {"mechanism": kind}
    for name in receipt_form._EVENTS[kind]:
        words = {"rule": "exponential", "monotone": False, "constant_normaliser": True, "answers": 2, "coins": 2}
        exact = name in (
            "scale",
            "variance",
            "rate",
            "epsilon",
            "slide",
            "dilation",
            "threshold_scale",
            "query_scale",
        ) or (kind, name) == (
            "metric",
            "sensitivity",
        )
        whole[name] = words.get(name, "1/4" if exact else 1)
    if kind == "threshold":
        whole["noise"] = {"mechanism": "laplace", "sensitivity": 1, "scale": "4"}
    if kind == "proposal":
        whole["test"] = whole["answer"] = {"mechanism": "laplace", "sensitivity": 1, "scale": "4"}
    if kind == "weightedthreshold":
        whole["noise"] = {"mechanism": "gaussian", "sensitivity_squared": 1, "variance": "4"}
    receipt_form._event(whole, "event")
    for name, value in whole.items():
        if (isinstance(value, str) and value[0].isdigit()) or type(value) is int:
            nothing = {**whole, name: "0" if isinstance(value, str) else 0}
            document["receipt"]["event"]["parts"] = [[nothing, 1]]
            assert not check_receipt(document).sound, (kind, name)


def test_no_draw_at_all_is_not_free() -> None:
    document = copy.deepcopy(BY_NAME["density row add_remove None"])
    document["receipt"]["event"]["parts"] = []
    assert not check_receipt(document).sound


def test_groups_that_the_data_names_need_a_threshold() -> None:
    document = copy.deepcopy(BY_NAME["sums {co add_remove None"])
    assert document["receipt"]["cells"] == [3]
    document["receipt"]["cells"] = [None]
    assert not check_receipt(document).sound


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("charge", "epsilon"), "-2"),
        (("charge", "epsilon"), "1e3"),
        (("charge", "epsilon"), "4/2"),
        (("charge", "epsilon"), 2),
        (("charge", "epsilon"), "inf"),
        (("charge", "delta"), "3/2"),
        (("charge", "delta"), "1"),
        (("charge", "epsilon"), "9" * 5000),
        (("receipt",), True),
        (("receipt",), 1.0),
        (("bounds", "rows"), 0),
        (("bounds", "groups"), True),
        (("cells", 0), -3),
        (("cells", 0), 3.0),
        (("relation",), "add-remove"),
        (("data", 0, "version"), "-1"),
        (("data", 0, "unit"), "a\x1b[2Jb"),
        (("ledger", 0, "sequence"), 0),
        (("ledger", 0, "hash"), "A" * 64),
        (("ledger", 0, "time"), -1),
        (("answer",), ""),
        (("query",), None),
        (("draws", 0, "per"), "nobody"),
        (("draws", 0, "adds", 1), 0.5),
        (("draws", 0, "adds"), [1, 0]),
        (("draws", 0, "noise", "scale"), "nan"),
        (("event", "mechanism"), "laplace"),
        (("derivation",), "trust me"),
    ],
)
def test_each_field_has_one_type_and_range(place: tuple[str | int, ...], value: object) -> None:
    document = copy.deepcopy(BY_NAME["count {co add_remove 0"])
    assert check_receipt(document).sound
    target: Any = document["receipt"]
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = value
    assert not check_receipt(document).sound
    assert not check_receipt(document["receipt"]).sound


@pytest.mark.parametrize(
    "event",
    [
        {"mechanism": "laplace", "sensitivity": 1, "scale": "-10"},
        {"mechanism": "laplace", "sensitivity": -1, "scale": "1"},
        {"mechanism": "gaussian", "sensitivity_squared": -1, "variance": "1"},
        {"mechanism": "flips", "distance": 1, "rate": "-1"},
        {"mechanism": "metric", "sensitivity": "-1", "rate": "1", "constant_normaliser": True},
        {"mechanism": "metric", "sensitivity": "1", "rate": "1", "constant_normaliser": 1},
        {"mechanism": "response", "answers": 1, "epsilon": "1"},
        {"mechanism": "response", "answers": 2, "epsilon": "-1"},
        {"mechanism": "selection", "rule": "exponential", "sensitivity": 1, "monotone": True, "rate": "-1"},
        {"mechanism": "selection", "rule": "exponential", "sensitivity": 1, "monotone": 1, "rate": "1/4"},
        {"mechanism": "selection", "rule": "uniform", "sensitivity": 1, "monotone": True, "rate": "1/4"},
        {"mechanism": "laplace", "sensitivity": 1, "scale": "10", "extra": 1},
        {"mechanism": "together", "parts": []},
        {"mechanism": "sparsevector", "sensitivity": 1},
        {"mechanism": ["laplace"]},
        None,
        [],
        "laplace",
    ],
)
def test_each_mechanism_has_its_facts_in_their_ranges(event: object) -> None:
    document = copy.deepcopy(BY_NAME["density row add_remove None"])
    document["receipt"]["event"]["parts"] = [[event, 1]]
    found = check_receipt(document)
    assert not found.sound


@pytest.mark.parametrize(
    "mechanism",
    [
        {"mechanism": "flips", "distance": 2, "rate": "1/2"},
        {"mechanism": "metric", "sensitivity": "1", "rate": "1/2", "constant_normaliser": False},
    ],
)
def test_mechanisms_that_no_old_receipt_has_are_accepted(mechanism: dict[str, Any]) -> None:
    document = copy.deepcopy(BY_NAME["density row add_remove None"])
    document["receipt"]["event"]["parts"] = [[mechanism, 2]]
    found = check_receipt(document)
    assert (found.problems, found.loss.split(" (")[0]) == ([], "ε = 2")
    document["receipt"]["event"]["parts"] = [[mechanism, 3]]
    assert not check_receipt(document).sound


@pytest.mark.parametrize(
    "text",
    [
        '{"receipt": 1, "receipt": 1}',
        '{"a": NaN}',
        '{"a": [Infinity]}',
        "[" * 100_000 + "]" * 100_000,
        "",
        '{"a": ' + "9" * 5000 + "}",
        '{"answer": {"x": 1, "x": 2}}',
    ],
)
def test_text_that_can_be_read_in_two_ways_is_not_read(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whichever it is
        receipt_fields.parse_json(text)


def test_a_document_nested_too_deeply_is_refused_in_words() -> None:
    deep: Any = 0
    for _ in range(100_000):
        deep = [deep]
    document = copy.deepcopy(BY_NAME["density row add_remove None"])
    document["answer"]["model"]["terms"] = deep
    found = check_receipt(document)
    assert not found.sound


def test_huge_counts_take_no_time_and_no_memory() -> None:
    document = copy.deepcopy(BY_NAME["order {co add_remove 0"])
    for part in document["receipt"]["event"]["parts"]:
        part[1] = 10**29
    document["receipt"]["bounds"] = {"groups": 10**29, "rows": 10**29}
    document["receipt"]["cells"] = [10**29]
    assert not check_receipt(document).sound


@pytest.mark.parametrize("beside", [{"note": 1}, {"epsilon": "1"}, {"delta": "1/2"}])
def test_nothing_stands_beside_answer_and_receipt_that_says_otherwise(beside: dict[str, object]) -> None:
    assert not check_receipt(BY_NAME["count row add_remove 0"] | beside).sound


def test_the_answer_of_a_server_with_what_it_cost_is_accepted() -> None:
    beside = {"epsilon": "2", "delta": "0", "left": "998", "replayed": False}
    assert check_receipt(BY_NAME["count row add_remove 0"] | beside).sound


def test_a_release_without_its_answer_is_not_one() -> None:
    assert not check_receipt({"receipt": BY_NAME["count row add_remove 0"]["receipt"]}).sound
