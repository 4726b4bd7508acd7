"""The methods paragraph of a release states how often its own noise moves odds by more than e^ε."""

import math
import re
from fractions import Fraction
from pathlib import Path

import pytest

import hubbub
from hubbub.server.pages.releases import methods

YAML = """
version: 1
datasets:
  visits:
    source: visits.csv
    unit: {column: id, groups: 30, rows: 1}
    columns: {id: {hidden: true}, code: {type: integer, bounds: [0, 99]}}
    budget: {epsilon: 4, delta: 1e-6}
analysts: {ana: {visits: {epsilon: 3}}}
"""


@pytest.mark.row(114)
def test_the_methods_paragraph_states_the_chance_of_its_noise(tmp_path: Path) -> None:
    """Gaussian noise on up to 30 groups: e^(−(ε − ρ)²/4ρ) bounds the chance, and the printed figure is at most that
    on the grid of Rényi orders; it is larger than the exact tail of a normal loss, and than δ.
    """
    rows = "".join(f"{person},{(7 * person + k) % 100}\n" for person in range(50) for k in range(30))
    (tmp_path / "visits.csv").write_text("id,code\n" + rows)
    (tmp_path / "hubbub.yaml").write_text(YAML)
    with hubbub.open(tmp_path / "hubbub.yaml", analyst="ana") as session:
        release = session.query("SELECT code, COUNT(*) AS n FROM visits GROUP BY code", epsilon="0.3")
    ((event, times),) = release.receipt["event"]["parts"]
    assert (event["mechanism"], event["sensitivity_squared"], times) == ("gaussian", 30, 1)
    rho = 15 / float(Fraction(event["variance"]))
    told = re.search(r"more than ([\d.]+) with probability at most ([\d.e-]+\d)\.", methods(release))
    assert told is not None
    assert told[1] == "1.35"  # e^0.3 = 1.3499
    chernoff = math.exp(-((0.3 - rho) ** 2) / (4 * rho))
    tail = math.erfc((0.3 - rho) / math.sqrt(2 * rho) / math.sqrt(2)) / 2
    assert tail < float(told[2]) < 1.5 * chernoff
    assert float(told[2]) > float(release.delta)
    assert "rise by a factor of at most 1.4, except with probability 3.39e-05." in methods(release)  # 1e-6/(1 − e^−.03)
