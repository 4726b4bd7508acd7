"""docs/crowd.md, read as code: its snippet, its commands, its pictures, its formulas."""

import re
import shlex
from pathlib import Path

import numpy as np

from hubbub.cli import build_parser
from hubbub.crowd.studies.catalogue import STUDIES
from hubbub.crowd.theory import random_error, uniform_chance

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "crowd.md").read_text(encoding="utf-8")


def test_the_snippet_runs() -> None:
    (snippet,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    names: dict[str, object] = {}
    exec(snippet, names)
    sanitized = names["sanitized"]
    assert np.max(sanitized.tables["cells"]["count"]) < 20  # type: ignore[attr-defined]


def test_the_commands_are_commands() -> None:
    found = [shlex.split(line.partition(" #")[0]) for line in TEXT.splitlines() if line.startswith("hubbub ")]
    assert len(found) == 7
    for words in found:
        assert build_parser().parse_args(words[1:]).command in ("sanitize", "attack")


def test_the_pictures_are_there_and_all_of_them() -> None:
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", TEXT)
    drawn = {Path(each).stem for each in pictures if each.startswith("crowd/")}
    assert {path.stem for path in (DOCS / "crowd").iterdir()} == drawn
    assert {name for name in drawn if name.rpartition("-")[0] not in ("isolation", "informed")} <= set(STUDIES)
    assert all((DOCS / each).is_file() for each in pictures)


def test_all_studies_are_described() -> None:
    assert re.findall(r"^\| `([\w-]+)` \| (?:§|remark|lemma)", TEXT, re.MULTILINE) == list(STUDIES)


def test_figures_of_formulas_are_what_the_formulas_give() -> None:
    chances = [f"{100 * uniform_chance(c=3, t=10, d=d):.2g}%" for d in (2, 5, 10)]
    assert chances == ["65%", "3.6%", "0.015%"]
    assert "65% (d = 2), 3.6% (5) and 0.02% (10)" in TEXT
    exact, _, printed = random_error(k=1, c=2)
    assert f".{exact * 1e4:04.0f} > .{printed * 1e4:04.0f}" in TEXT


def test_it_is_said_that_nothing_here_is_private() -> None:
    assert "It is not differentially private" in TEXT
