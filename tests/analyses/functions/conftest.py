"""A table of people with several rows each, opened as its owner does."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hubbub.curator.session import Session, open_session

Opener = Callable[..., Session]

YAML = """
version: 1
datasets:
  visits:
    source: visits.csv
    unit: {unit}
    relation: {relation}
    columns:
      who: {{type: integer}}
      cost: {{type: real, bounds: [0, 100]}}
      word: {{}}
    budget: {{epsilon: 100000, delta: 1e-5}}
analysts:
  ana: {{visits: {{epsilon: 100000, delta: 1e-5}}}}
"""


@pytest.fixture
def clinic(tmp_path: Path) -> Iterator[Opener]:
    with ExitStack() as opened:

        def open_it(*, unit: str = "row", relation: str = "add_remove", people: int = 200) -> Session:
            lines = [f"{i},{30 + (i * 7 + j) % 41},w{j}" for i in range(people) for j in range(3)]
            (tmp_path / "visits.csv").write_text("\n".join(["who,cost,word", *lines, "900,,", "901,nan,"]) + "\n")
            (tmp_path / "hubbub.yaml").write_text(YAML.format(unit=unit, relation=relation))
            return opened.enter_context(open_session(tmp_path / "hubbub.yaml", analyst="ana"))

        yield open_it
