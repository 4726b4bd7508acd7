"""Where nothing is said, a question may use the δ of the least cap, and never that of the largest."""

from fractions import Fraction
from pathlib import Path

import pytest

from hubbub.curator.session import open_session

YAML = """
version: 1
datasets:
  t:
    source: t.csv
    unit: row
    columns: {{w: {{type: text}}}}
    budget: {{epsilon: 10, delta: 1e-3}}
analysts:
  ana: {{t: {{epsilon: 10, delta: {analyst}}}}}
groups:
  interns: {{members: [ana], t: {{epsilon: 10, delta: {group}}}}}
"""


@pytest.mark.parametrize(("analyst", "group"), [("1e-5", "1e-4"), ("1e-4", "1e-5")])
def test_the_default_delta_is_the_least_of_the_caps(tmp_path: Path, analyst: str, group: str) -> None:
    """Keys that nobody declared use a thousandth of the least δ, here a hundred-thousandth, whosever cap it is."""
    (tmp_path / "t.csv").write_text("w\n" + "red\n" * 50)
    (tmp_path / "hubbub.yaml").write_text(YAML.format(analyst=analyst, group=group))
    with open_session(tmp_path / "hubbub.yaml", analyst="ana") as session:
        release = session.query("SELECT w, COUNT(*) AS n FROM t GROUP BY w", epsilon=1)
        assert Fraction(release.receipt["charge"]["delta"]) == Fraction(1, 10**8)
