"""How near related synthetic tables are to the real ones: people and visits that are made up by a recipe.

HUBBUB_CAMPAIGN=full .venv/bin/python -m benchmarks.accuracy_related
"""

import time
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from tests.campaigns.frame import Report, run

import hubbub
from hubbub.analyses.synthetic.related_tables import RelatedTables

EPSILON, DELTA, MOST = 1, "1e-9", 12
PEOPLE = {"sex": 2, "age": 10, "region": 6, "chronic": 2}
VISITS = {"kind": 5, "ward": 8, "cost": 10}


def recipe(people: int, some: np.random.Generator) -> tuple[Any, Any]:
    """Make people, and visits that depend on them: the old and the chronically ill come often, and to other wards."""
    import pandas as pd

    age = some.integers(0, 10, people)
    sex, region = some.integers(0, 2, people), some.choice(6, people, p=[0.4, 0.2, 0.15, 0.1, 0.1, 0.05])
    chronic = (some.random(people) < 0.02 + 0.05 * age).astype(int)
    times = np.minimum(some.negative_binomial(1.2, 1.2 / (1.2 + 0.8 + 0.2 * age + 2.5 * chronic)), MOST)
    owner = np.repeat(np.arange(people), times)
    ill, old, often = chronic[owner], age[owner], times[owner] > 5
    kind = np.where(some.random(len(owner)) < 0.3 + 0.4 * ill, 0, some.integers(1, 5, len(owner)))
    ward = np.where(some.random(len(owner)) < 0.5, (old + 3 * sex[owner]) % 8, (kind * 2 + region[owner]) % 8)
    cost = np.clip(np.rint(2 + kind + 2 * often + some.normal(0, 1.2, len(owner))), 0, 9).astype(int)
    first = pd.DataFrame({"id": np.arange(people), "sex": sex, "age": age, "region": region, "chronic": chronic})
    return first, pd.DataFrame({"patient": owner, "kind": kind, "ward": ward, "cost": cost})


def distances(people: Any, visits: Any, other_people: Any, other_visits: Any) -> dict[str, float]:
    """Compute mean total variation distances: of pairs inside of each table and across both, and of the degrees."""

    def tables(first: Any, second: Any) -> dict[str, dict[Any, Any]]:
        times = second.groupby("patient").size().reindex(first["id"], fill_value=0).to_numpy()
        degree = np.bincount(times, minlength=MOST + 1) / len(times)
        joined = second.merge(first, left_on="patient", right_on="id")
        found: dict[str, dict[Any, Any]] = {"degree": {(): degree}, "people": {}, "visits": {}, "across": {}}
        for name, size in PEOPLE.items():
            cells = np.zeros((size, MOST + 1))
            np.add.at(cells, (first[name].to_numpy(dtype=int), times), 1)
            found.setdefault("degree by a column", {})[name] = cells / len(first)
        for where, columns, frame in (("people", PEOPLE, first), ("visits", VISITS, second)):
            for one, other in combinations(columns, 2):
                found[where][one, other] = _shares(frame, one, other)
        for one in PEOPLE:
            for other in VISITS:
                found["across"][one, other] = _shares(joined, one, other)
        return found

    one, two = tables(people, visits), tables(other_people, other_visits)
    return {
        kind: float(np.mean([np.abs(one[kind][key] - two[kind][key]).sum() / 2 for key in one[kind]])) for kind in one
    }


def _shares(frame: Any, one: str, other: str) -> Any:
    sizes = PEOPLE | VISITS
    cells = np.zeros((sizes[one], sizes[other]))
    np.add.at(cells, (frame[one].to_numpy(dtype=int), frame[other].to_numpy(dtype=int)), 1)
    return cells / max(1, len(frame))


def measure(report: Report) -> None:
    """Measure at one size, beside a bootstrap of people with their visits and beside shuffled columns."""
    count = report.scale(ci=5_000, full=20_000)
    people, visits = recipe(count, np.random.default_rng(3))
    again, again_visits = recipe(count, np.random.default_rng(4))
    for kind, value in distances(people, visits, again, again_visits).items():
        report.figure(f"fresh_sample {kind}", round(value, 4))
    some = np.random.default_rng(5)
    shuffled = visits.copy()
    for name in VISITS:
        shuffled[name] = some.permutation(shuffled[name].to_numpy())
    for kind, value in distances(people, visits, people, shuffled).items():
        if kind in ("visits", "across"):
            report.figure(f"shuffled_columns {kind}", round(value, 4))
    found: list[dict[str, float]] = []
    for _ in report.progress(range(report.scale(ci=1, full=3)), "related"):
        used = time.process_time()
        tables = _asked(people, visits).to_pandas()
        found.append(distances(people, visits, tables["patients"], tables["visits"]))
        known = set(tables["patients"]["id"])
        report.target("keys_without_a_person", len(set(tables["visits"]["patient"]) - known), at_most=0)
        report.figure("cpu_seconds", round(time.process_time() - used, 1))
    for kind in found[0]:
        report.figure(f"synthetic {kind}", [round(each[kind], 4) for each in found])


def _asked(people: Any, visits: Any) -> RelatedTables:
    with TemporaryDirectory() as folder:
        place = Path(folder)
        people.to_csv(place / "patients.csv", index=False)
        visits.to_csv(place / "visits.csv", index=False)
        budget = f"{{epsilon: {EPSILON}, delta: {DELTA}}}"
        bounds = f"groups: {MOST}, rows: {MOST}, rows_total: {MOST}"
        one, other = (
            "".join(f"      {name}: {{type: integer, bounds: [0, {size - 1}]}}\n" for name, size in columns.items())
            for columns in (PEOPLE, VISITS)
        )
        (place / "hubbub.yaml").write_text(
            f"version: 1\ndatasets:\n  patients:\n    source: patients.csv\n    unit: {{column: id, entity: patient}}\n"
            f"    columns:\n      id: {{type: integer}}\n{one}    budget: {budget}\n"
            f"  visits:\n    source: visits.csv\n    unit: {{column: patient, entity: patient, {bounds}}}\n"
            f"    columns:\n      patient: {{type: integer}}\n{other}    budget: {budget}\n"
            f"analysts:\n  ana: {{patients: {budget}, visits: {budget}}}\n"
        )
        with hubbub.open(place / "hubbub.yaml", analyst="ana") as h:
            release = h.synthetic_tables(
                "patients", list(PEOPLE), child="visits", child_columns=list(VISITS), epsilon=EPSILON, delta=DELTA
            )
            found = hubbub.model(release)
            if not isinstance(found, RelatedTables):
                raise TypeError("synthetic_tables has a model of related tables")
            return found


if __name__ == "__main__":
    run(measure)
