"""A connection of each kind, over the demo's data."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import Starter, lay_out, start_served  # noqa: F401 - a fixture

from hubbub.client import dbapi

Connecting = Callable[..., dbapi.Connection]


@pytest.fixture(params=["path", "url"])
def connecting(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connecting]:
    """Connect as ana, with settings; all is closed at the end."""
    with ExitStack() as stack:

        def made(**settings: Any) -> dbapi.Connection:
            if request.param == "path":
                return stack.enter_context(dbapi.connect(path=lay_out(tmp_path), analyst="ana", **settings))
            starter: Starter = request.getfixturevalue("start_served")
            world = starter()
            return stack.enter_context(dbapi.connect(world.url, world.tokens["ana"], **settings))

        yield made
