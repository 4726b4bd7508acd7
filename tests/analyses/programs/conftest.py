"""Small worlds for private programs."""

from collections.abc import Callable, Iterator

import duckdb
import pytest
from tests.fixtures.program_tables import World

from hubbub.mechanisms.exponential import Exponential
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import RandomSource


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """An empty world; each draw of a mechanism is counted by its event."""
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        made = World(connection)
        for kind in (Laplace, Gaussian, Exponential):
            drawn = kind.sample

            def counted(
                self: Laplace, value: object, source: RandomSource, drawn: Callable[..., object] = drawn
            ) -> object:
                made.drawn[self.event] += 1
                return drawn(self, value, source)

            monkeypatch.setattr(kind, "sample", counted)
        yield made
