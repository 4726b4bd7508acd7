"""Sessions in the sandbox: `h.sandbox()`, `hubbub.open(…, sandbox=True)`, and stand-ins that are releases."""

from collections.abc import Callable
from pathlib import Path

import pytest

import hubbub
from hubbub.answers.sandbox import MADE_UP
from hubbub.config import load
from hubbub.curator.opening import open_curator
from hubbub.curator.sandbox_session import open_sandbox, stored_rows
from hubbub.errors import ParameterError
from hubbub.frames import count

YAML = """
version: 1
datasets:
  visits:
    source: visits.csv
    unit: row
    columns: {site: {values: [a, b]}, day: {values: [1, 2, 3]}, cost: {bounds: [0, 10]}}
    budget: {epsilon: 9}
  labs: {source: labs.csv, unit: row, columns: {result: {values: [x, y]}}, budget: {epsilon: 1}}
analysts: {ana: {visits: {epsilon: 9}}, ben: {labs: {epsilon: 1}}}
"""
BY_SITE = "SELECT site, COUNT(*) AS n FROM visits GROUP BY site"
Change = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "visits.csv").write_text("site,day,cost\n" + "a,1,5\n" * 300)
    (tmp_path / "labs.csv").write_text("result\nx\n")
    (tmp_path / "hubbub.yaml").write_text(YAML)
    return tmp_path


def ruled(folder: Path, rule: str) -> Path:
    text = YAML.replace("    source: visits.csv\n", f"    source: visits.csv\n    {rule}\n")
    (folder / "hubbub.yaml").write_text(text)
    return folder / "hubbub.yaml"


def test_the_ledger_is_not_opened(folder: Path) -> None:
    with hubbub.open(folder / "hubbub.yaml", analyst="ana", sandbox=True) as h:
        assert h.datasets() == ("visits",)
        assert h.query(BY_SITE, epsilon=1).sandbox == MADE_UP
        assert h.table("visits").group_by("site").agg(n=count()).query(epsilon=1).sandbox == MADE_UP
        with h.batch(epsilon=1) as b:
            asked = b.query(BY_SITE)
        assert asked.result().sandbox == MADE_UP
        assert h.call("kmeans", {"table": "visits", "columns": ["cost"], "k": 2}, epsilon=1).sandbox == MADE_UP
        assert h.estimate(BY_SITE, epsilon=1).sandbox == MADE_UP
        assert h.describe("visits").name == "visits"
    assert not (folder / "hubbub-ledger").exists()


def test_a_dataset_without_a_stand_in_is_named(folder: Path) -> None:
    with pytest.raises(ParameterError, match="HB121"):
        open_sandbox(folder / "hubbub.yaml")
    path = ruled(folder, "sandbox: off")
    with hubbub.open(path, analyst="ana") as h, pytest.raises(ParameterError, match="HB120"):
        h.sandbox("visits")


def test_a_release_of_synthetic_rows_is_the_stand_in(folder: Path) -> None:
    with hubbub.open(folder / "hubbub.yaml", analyst="ana") as h:
        number = h.synthetic("visits", ["site", "day"], epsilon=8).receipt["ledger"][0]["sequence"]
    path = ruled(folder, f"sandbox: {{release: {number}}}")
    with hubbub.open(path, analyst="ana") as h, h.sandbox("visits") as tried:
        release = tried.query(BY_SITE, epsilon=8)
        assert f"release {number} of visits" in release.sandbox
        counts = {row[0]: int(str(row[1])) for row in release.rows}
        assert counts["a"] > 200 > 60 > counts["b"]  # as in the data, by what was paid for
        assert tried.query("SELECT AVG(cost) FROM visits", epsilon=1).sandbox  # made up around the released rows
        assert len(h.releases()) == 1
    with open_sandbox(path, analyst="ana") as tried:
        assert f"release {number}" in tried.query(BY_SITE, epsilon=1).sandbox


@pytest.mark.parametrize("number", [1, 2, 99])
def test_another_release_is_no_stand_in(folder: Path, number: int) -> None:
    with hubbub.open(folder / "hubbub.yaml", analyst="ana") as h:
        h.query(BY_SITE, epsilon=1)
    with open_sandbox(ruled(folder, f"sandbox: {{release: {number}}}"), analyst="ana") as tried:
        assert tried.datasets() == ()


def test_a_release_that_cannot_be_read_is_named(folder: Path) -> None:
    config = load(folder / "hubbub.yaml")
    with pytest.raises(ParameterError, match="HB863 The sandbox of visits is release 7"):
        stored_rows(config)(config.datasets["visits"].table, 7)


def test_a_release_that_waits_for_review_is_no_stand_in(folder: Path) -> None:
    path = ruled(folder, "review: true")
    with hubbub.open(path, analyst="ana") as h:
        with pytest.raises(hubbub.HubbubError, match="HB910"):
            h.synthetic("visits", ["site", "day"], epsilon=8)
        number = h.releases()[0].id
    path = ruled(folder, f"review: true\n    sandbox: {{release: {number}}}")
    with open_sandbox(path, analyst="ana") as tried:
        assert tried.datasets() == ()
    with open_curator(load(path)) as curator:
        curator.decide(number, approve=True, by="stella")
    with open_sandbox(path, analyst="ana") as tried:
        assert tried.datasets() == ("visits",)
