"""The work of binding: nested WITH items and subqueries are not bound again and again at every level."""

from collections.abc import Callable

import pytest
from tests.sql.test_keyed_releases import SHOP

from hubbub.errors import QueryError
from hubbub.sql.bind import bind_releases
from hubbub.sql.bind_scope import MAX_BOUND, Context


def nested(depth: int) -> str:
    """Compare with an average over the rows above another average, and so on."""
    text = "1"
    for level in range(depth, 0, -1):
        text = f"(SELECT AVG(l{level}.quantity) FROM lines l{level} WHERE l{level}.quantity > {text})"
    return f"SELECT COUNT(*) FROM lines WHERE quantity > {text}"


def keyed(depth: int) -> str:
    text = "1"
    for level in range(depth, 0, -1):
        inner = f"lines l{level} WHERE l{level}.mode = l{level - 1}.mode AND l{level}.quantity > {text}"
        text = f"(SELECT AVG(l{level}.quantity) FROM {inner})"
    return f"SELECT COUNT(*) FROM lines l0 WHERE l0.quantity > {text}"


def items(condition: str) -> Callable[[int], str]:
    """Write WITH items each of which reads the one before twice: as its rows and in a condition."""

    def text(depth: int) -> str:
        written = ["c0 AS (SELECT id, mode, quantity FROM lines)"]
        for level in range(1, depth + 1):
            rows = f"SELECT a.id, a.mode, a.quantity FROM c{level - 1} a WHERE"
            written.append(f"c{level} AS ({rows} {condition.format(before=f'c{level - 1}')})")
        return f"WITH {', '.join(written)} SELECT COUNT(*) FROM c{depth}"

    return text


FAMILIES = {
    "nested averages": nested,
    "nested averages for each key": keyed,
    "averages of WITH items": items("a.quantity > (SELECT AVG(quantity) FROM {before})"),
    "averages of WITH items for each key": items(
        "a.quantity > (SELECT AVG(quantity) FROM {before} b WHERE b.mode = a.mode)"
    ),
    "rows of WITH items": items("EXISTS (SELECT 1 FROM {before} b WHERE b.id = a.id AND b.quantity > a.quantity)"),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_binding_visits_a_bounded_number_of_nodes(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At any depth the query is bound or refused within the limit, and the limit is not passed by much."""
    visited, spend = list[int](), Context.spend

    def counted(self: Context, node: object) -> None:
        visited.append(self.bound["nodes"])
        spend(self, node)  # type: ignore[arg-type]

    monkeypatch.setattr(Context, "spend", counted)
    bind_releases(FAMILIES[family](4), tables=SHOP)
    assert max(visited) <= 10_000
    refusal = ""
    try:
        bind_releases(FAMILIES[family](15), tables=SHOP)
    except QueryError as error:
        refusal = error.code
    assert refusal in {"", "HB518", "HB746", "HB754"}
    assert max(visited) <= MAX_BOUND + 10_000


@pytest.mark.parametrize("family", ["nested averages", "nested averages for each key", "averages of WITH items"])
def test_deep_queries_of_few_words_are_bound(family: str) -> None:
    bind_releases(FAMILIES[family](15), tables=SHOP)
