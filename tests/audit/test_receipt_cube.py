"""Answers that follow from a cube: free for all who share, right by the engine, and derived again by the checker."""

import copy
import json
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import hubbub
from hubbub.audit.receipt import check_receipt
from hubbub.audit.receipt_cube import cube_values
from hubbub.audit.receipt_derived import check_sources
from hubbub.audit.receipt_loss import ReceiptError
from hubbub.curator.earlier import measured_hash
from hubbub.curator.session import Session
from hubbub.errors import ParameterError

YAML = """
version: 1
datasets:
  visits:
    source: visits.parquet
    unit: row
    share: everyone
    columns:
      site: {values: [a, b, c], required: true}
      ward: {values: [x, y]}
      female: {type: boolean, nullable: true}
      age: {type: integer, bounds: [0, 9]}
      weight: {type: real, values: [1, 2.5]}
      cost: {type: real, bounds: [0, 50], step: 0.5}
    budget: {epsilon: 1000, delta: 1e-6}
  people:
    source: visits.parquet
    unit: {column: age, groups: 2, rows: 2}
    columns: {site: {values: [a, b, c]}, age: {type: integer, bounds: [0, 9]}}
    budget: {epsilon: 1000, delta: 1e-6}
analysts: {ana: {visits: {epsilon: 900, delta: 1e-6}, people: {epsilon: 90, delta: 1e-6}}, ben: {visits: {epsilon: 1}}}
"""
QUERIES = (
    "SELECT COUNT(*) AS n, SUM(cost) AS s FROM visits",
    "SELECT site, COUNT(*) AS n, AVG(cost) AS a FROM visits GROUP BY site",
    "SELECT site, female, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY site, female",
    "SELECT ward, COUNT(*) AS n FROM visits WHERE age BETWEEN 3 AND 7 GROUP BY ward",
    "SELECT age // 4 AS decade, COUNT(cost) AS n FROM visits WHERE ward IS NULL GROUP BY age // 4",
    "SELECT COUNT(*) AS n FROM visits WHERE site <> 'b' AND (female OR female IS NULL)",
)

Papers = dict[int, dict[str, Any]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cube-source")
    with duckdb.connect() as made:
        made.execute(
            "COPY (SELECT ['a', 'b', 'c'][1 + i % 3] AS site, ['x', 'y', 'unlisted', NULL][1 + i % 4] AS ward,"
            " CASE WHEN i % 7 < 6 THEN i % 2 = 0 END AS female, (i * 7) % 10 AS age, 1.0 AS weight,"
            " CASE WHEN i % 5 > 0 THEN ((i * 37) % 100) / 2 END::DOUBLE AS cost FROM range(3000) t(i))"
            f" TO '{path}/visits.parquet'"
        )
    (path / "hubbub.yaml").write_text(YAML)
    return path


@pytest.fixture(scope="module")
def ana(folder: Path) -> Iterator[Session]:
    with hubbub.open(folder / "hubbub.yaml", analyst="ana") as session:
        measures = ["sum(cost)", "count(cost)"]
        session.cube("visits", ["site", "ward", "female", "age"], measures=measures, order=2, epsilon=200)
        session.cube("visits", ["weight"], order=1, epsilon=1)
        session.cube("people", ["site"], order=1, epsilon=1)
        yield session


@pytest.fixture(scope="module")
def made(ana: Session) -> tuple[dict[str, Any], Papers]:
    """A derived answer, and the receipt of its source."""
    answer = ana.query(QUERIES[2], free=True)
    (source,) = answer.receipt["derived"]["sources"]
    papers = {source["charge"]: dict(ana.release(source["charge"]).receipt)}
    return json.loads(json.dumps(answer.document())), copy.deepcopy(papers)


@pytest.mark.parametrize("text", QUERIES)
def test_groups_of_a_cube_are_those_of_the_engine(ana: Session, folder: Path, text: str) -> None:
    answer = ana.query(text, free=True, raw=True)
    assert answer.epsilon == 0
    view = "(SELECT * REPLACE (CASE WHEN ward <> 'unlisted' THEN ward END AS ward) FROM '{}/visits.parquet') AS visits"
    with duckdb.connect() as made:
        exact = made.execute(text.replace("visits", view.format(folder), 1)).fetchall()
    keys = sum(ends == (None, None) for ends in answer.intervals[0])
    known = {tuple(row[:keys]): row[keys:] for row in exact}
    seen = 0
    for row, ends in zip(answer.rows, answer.intervals, strict=True):
        if tuple(row[:keys]) not in known:
            continue  # an empty group
        for value, (low, high) in zip(known[tuple(row[:keys])], ends[keys:], strict=True):
            assert low is not None
            assert high is not None
            # beyond 3.5 times its margin (7 deviations) with less than 1e-11
            assert abs(value - (low + high) / 2) <= 1.75 * (high - low)
            seen += 1
    assert seen >= len(exact) - 1


def test_a_cube_is_free_for_those_with_whom_it_is_shared(folder: Path, ana: Session) -> None:
    with hubbub.open(folder / "hubbub.yaml", analyst="ben") as ben:
        first = ben.query(QUERIES[4], epsilon="0.01")
        assert first.epsilon == 0
        assert sum(charge.epsilon for charge in ben.releases()) == 0


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) AS n FROM visits WHERE age > 3 AND female AND site = 'a'",  # three columns
        "SELECT weight, COUNT(*) AS n FROM visits GROUP BY weight",  # decimals may be beside their values
        "SELECT COUNT(*) AS n FROM visits WHERE cost > 3",
        "SELECT site, COUNT(*) AS n FROM people GROUP BY site",  # rows of a person were left out
        "SELECT COUNT(DISTINCT age) AS n FROM visits",
    ],
)
def test_what_a_cube_does_not_tell_is_not_free(ana: Session, text: str) -> None:
    with pytest.raises(ParameterError, match="HB167"):
        ana.query(text, free=True)


def test_an_honest_answer_is_derived_again(made: tuple[dict[str, Any], Papers]) -> None:
    document, papers = made
    assert check_receipt(document).sound
    assert "follow exactly" in check_sources(document["receipt"], papers)[0]
    assert all(check_receipt(paper).sound for paper in papers.values())


Change = Callable[[dict[str, Any], dict[str, Any]], None]


def another_marginal(derived: dict[str, Any], source: dict[str, Any]) -> None:
    derived["views"][0]["set"] += 1


def a_larger_marginal_of_the_same_columns(derived: dict[str, Any], source: dict[str, Any]) -> None:
    derived["views"].append(copy.deepcopy(derived["views"][0]))
    derived["measures"][1] = [[1, 0, derived["measures"][0][0][2]]]


def the_numbers_of_one_cell_alone(derived: dict[str, Any], source: dict[str, Any]) -> None:
    derived["sums"][0][0] = str(source["measured"]["sums"][0][0])


def another_scale(derived: dict[str, Any], source: dict[str, Any]) -> None:
    source["measured"]["columns"][0]["scales"][0] += 1


def another_noise(derived: dict[str, Any], source: dict[str, Any]) -> None:
    source["measured"]["noises"][0][0]["variance"] = "1"


def fewer_numbers(derived: dict[str, Any], source: dict[str, Any]) -> None:
    source["measured"]["sums"][0].pop()


def rows_that_have_no_cell(derived: dict[str, Any], source: dict[str, Any]) -> None:
    source["measured"]["columns"][1]["null"] = False


def one_draw_in_two_marginals(derived: dict[str, Any], source: dict[str, Any]) -> None:
    """Average the same number from two marginals of one cube, as if they were independent."""
    one = derived["views"][0]
    derived["views"].append({"source": 0, "set": 0, "cells": [0]})
    derived["measures"][0] = [[0, 0, "1/2"], [1, 0, "1/2"]]
    derived["groups"] = {"keys": []}
    one["cells"] = [0] * len(one["cells"])


@pytest.mark.parametrize(
    "change",
    [
        another_marginal,
        a_larger_marginal_of_the_same_columns,
        the_numbers_of_one_cell_alone,
        another_scale,
        another_noise,
        fewer_numbers,
        rows_that_have_no_cell,
        one_draw_in_two_marginals,
    ],
)
def test_every_planted_error_is_found(made: tuple[dict[str, Any], Papers], change: Change) -> None:
    document, papers = copy.deepcopy(made)
    derived, (source,) = document["receipt"]["derived"], papers.values()
    change(derived, source)
    derived["sources"][0]["measured"] = measured_hash(source)
    sound = check_receipt(source).sound and check_receipt(document["receipt"]).sound
    if sound:
        with pytest.raises(ReceiptError):
            check_sources(document["receipt"], papers)


def test_cells_are_found_again_from_exact_contrasts() -> None:
    """The contrasts of two columns are written out by hand: c·(sum of the first j) − c·j·(the next)."""
    cells = {(i, j): int(v) for (i, j), v in np.ndenumerate(np.arange(12).reshape(3, 4) ** 2)}
    scales = [[5, 2], [7, 3, 2]]
    columns = [{"scales": own, "values": [0] * len(own), "null": True} for own in scales]

    def row(column: int, j: int) -> list[int]:
        c, size = scales[column][j - 1], len(scales[column]) + 1
        return [c] * j + [-c * j] + [0] * (size - j - 1)

    sums = [sum(cells.values())]
    sums += [sum(row(0, j)[a] * v for (a, _), v in cells.items()) for j in (1, 2)]
    sums += [sum(row(1, j)[b] * v for (_, b), v in cells.items()) for j in (1, 2, 3)]
    sums += [sum(row(0, i)[a] * row(1, j)[b] * v for (a, b), v in cells.items()) for i, j in product((1, 2), (1, 2, 3))]
    measured = {"columns": columns, "order": 2}
    assert cube_values(measured, 3, sums) == list(cells.values())
    assert cube_values(measured, 1, sums) == [sum(v for (a, _), v in cells.items() if a == i) for i in range(3)]
    assert cube_values(measured, 0, sums) == sums[:1]
