import inspect
from fractions import Fraction
from hashlib import sha256

from hubbub.accounting.chain import Entry, append, canonical, facts_text, genesis, link, request_hash
from hubbub.core.events import LaplaceEvent

FIELDS: dict[str, object] = {
    "previous": b"p" * 32,
    "config": b"c" * 32,
    "request": b"r" * 32,
    "sequence": 7,
    "kind": "charge",
    "time": 5,
    "analyst": "ana",
    "dataset": "visits",
    "version": "v1",
    "facts": "{}",
    "query": "count",
    "key": "k",
    "charge": 0,
}


def digest(**changed: object) -> bytes:
    return link(**(FIELDS | changed))  # type: ignore[arg-type]


def test_every_field_is_bound_by_the_hash() -> None:
    assert set(FIELDS) == set(inspect.signature(link).parameters) == set(Entry._fields) - {"hash"}
    for name, value in FIELDS.items():
        changed: object = f"{value}x"
        if isinstance(value, bytes):
            changed = b"x" + value[1:]
        elif isinstance(value, int):
            changed = value + 1
        assert digest(**{name: changed}) != digest(), name


def test_text_cannot_move_from_one_field_to_the_next() -> None:
    assert digest(analyst="an", dataset="avisits") != digest(analyst="ana", dataset="visits")
    assert digest(key="k1", charge=0) != digest(key="k", charge=10)


def test_the_canonical_bytes_are_those_of_the_description() -> None:
    text = "\0".join(["7", "charge", "5", "ana", "visits", "v1", "{}", "count", "k", "0"]).encode()
    assert digest() == sha256(b"p" * 32 + b"c" * 32 + b"r" * 32 + text).digest()


def test_an_appended_entry_follows_the_one_before() -> None:
    first = append(genesis("id"), 1, "policy", 5, config=b"c" * 32, facts="{}")
    second = append(first.hash, 2, "charge", 6, config=b"c" * 32, facts="{}", analyst="ana")
    assert (first.previous, second.previous) == (genesis("id"), first.hash)
    assert genesis("id") != genesis("other")


def test_facts_are_written_in_one_form() -> None:
    assert facts_text(LaplaceEvent(1, Fraction(10))) == '{"mechanism":"laplace","scale":"10","sensitivity":1}'
    assert canonical({"b": [1, "ε"], "a": None}) == '{"a":null,"b":[1,"ε"]}'


def test_the_request_is_the_question_and_not_the_state_of_the_data() -> None:
    assert request_hash("visits", "{}", "count") == request_hash("visits", "{}", "count")
    assert (
        len(
            {
                request_hash("visits", "{}", "count"),
                request_hash("wards", "{}", "count"),
                request_hash("visits", "{x}", "count"),
                request_hash("visits", "{}", "sum"),
            }
        )
        == 4
    )
