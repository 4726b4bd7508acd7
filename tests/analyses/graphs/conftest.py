"""A small town's links, opened as a data owner would."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hubbub.curator.session import Session, open_session

Opener = Callable[..., Session]

#: A square with a diagonal, and a node that hangs on it by half an edge; the last rows name no edge.
ROWS = """who,a,b,w,x,y
1,0,1,1.0,ann,bob
1,1,2,1.0,bob,cat
2,2,3,1.0,cat,dan
2,3,0,1.0,dan,ann
3,0,2,0.25,ann,cat
3,3,4,0.5,dan,eve
3,4,3,0.25,eve,dan
4,2,2,1.0,cat,cat
4,,1,1.0,,bob
4,0,nan,1.0,ann,zoe
4,1,4,,bob,
"""

YAML = """
version: 1
datasets:
  links:
    source: links.csv
    unit: {unit}
    relation: {relation}
    columns:
      who: {{type: integer}}
      a: {{type: integer, bounds: [0, 4]}}
      b: {{type: integer, bounds: [0, 4]}}
      w: {{type: real, bounds: [0, 1], step: 0.25}}
      x: {{values: [ann, bob, cat, dan, eve]}}
      y: {{values: [ann, bob, cat, dan, eve]}}
      z: {{type: integer}}
    budget: {{epsilon: 100000}}
analysts:
  ana: {{links: {{epsilon: 100000}}}}
"""


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Opener]:
    """Open the links; the unit is the row unless something else is said."""
    with ExitStack() as opened:

        def open_it(*, unit: str = "row", relation: str = "add_remove", rows: str = ROWS) -> Session:
            header, *lines = rows.strip().splitlines()
            numbered = [f"{header},z", *(f"{line},{i}" for i, line in enumerate(lines))]
            (tmp_path / "links.csv").write_text("\n".join(numbered) + "\n")
            (tmp_path / "hubbub.yaml").write_text(YAML.format(unit=unit, relation=relation))
            return opened.enter_context(open_session(tmp_path / "hubbub.yaml", analyst="ana"))

        yield open_it
