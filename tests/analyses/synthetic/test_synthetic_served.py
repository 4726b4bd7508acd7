"""Tens of thousands of synthetic rows, through a real port and the ledger."""

from tests.server.conftest import Starter, start_served  # noqa: F401 - a fixture

import hubbub


def test_fifty_thousand_rows_come_through_a_server_and_are_replayed(start_served: Starter) -> None:  # noqa: F811
    world = start_served()
    with hubbub.connect(world.url, world.tokens["ana"]) as session:
        first = session.mwem("health", ["coinsurance"], ways=1, rounds=1, size=50_000, epsilon="0.1")
        assert len(first.rows) == 50_000
        again = session.mwem("health", ["coinsurance"], ways=1, rounds=1, size=50_000, epsilon="0.1")
    assert again.replayed
    assert again.document() == first.document()
