"""A made-up hospital in the shape of the OMOP common data model: a seeded recipe, no real patients.

Some event rows have no person, or one that is not in `person`: nobody owns them, so they are in no answer.
"""

from typing import Any

import duckdb
import numpy as np
from tests.fixtures.insert_rows import insert_rows

PEOPLE = 700
FIRST_DAY, LAST_DAY = np.datetime64("2018-01-01", "D"), np.datetime64("2021-12-31", "D")

CONCEPTS = (
    (8507, "MALE", "Gender"),
    (8532, "FEMALE", "Gender"),
    (8515, "Asian", "Race"),
    (8516, "Black or African American", "Race"),
    (8527, "White", "Race"),
    (9201, "Inpatient Visit", "Visit"),
    (9202, "Outpatient Visit", "Visit"),
    (9203, "Emergency Room Visit", "Visit"),
    (201826, "Type 2 diabetes mellitus", "Condition"),
    (320128, "Essential hypertension", "Condition"),
    (255573, "Chronic obstructive lung disease", "Condition"),
    (317009, "Asthma", "Condition"),
    (432867, "Hyperlipidemia", "Condition"),
    (4329847, "Myocardial infarction", "Condition"),
    (440383, "Depressive disorder", "Condition"),
    (260139, "Acute bronchitis", "Condition"),
    (1503297, "Metformin", "Drug"),
    (1308216, "Lisinopril", "Drug"),
    (1539403, "Simvastatin", "Drug"),
    (1112807, "Aspirin", "Drug"),
    (1154343, "Albuterol", "Drug"),
    (1310149, "Warfarin", "Drug"),
    (3004410, "Hemoglobin A1c", "Measurement"),
    (3004249, "Systolic blood pressure", "Measurement"),
    (3038553, "Body mass index", "Measurement"),
    (3027018, "Heart rate", "Measurement"),
)
#: Groups of concepts: an ancestor that is no concept of a row, and the concepts below it.
ANCESTORS = {
    134057: ("Disorder of cardiovascular system", (320128, 4329847)),
    320136: ("Disorder of respiratory system", (255573, 317009, 260139)),
    21600744: ("Drugs used in diabetes", (1503297,)),
    21601664: ("Cardiac therapy", (1308216, 1112807, 1310149)),
}
MEANS = {3004410: (6.5, 1.2), 3004249: (128, 15), 3038553: (27, 5), 3027018: (74, 11)}


def _of(domain: str) -> list[int]:
    return [number for number, _, kind in CONCEPTS if kind == domain]


def _days(rng: np.random.Generator, count: int) -> Any:
    return FIRST_DAY + rng.integers(0, int((LAST_DAY - FIRST_DAY).astype(int)) + 1, count)


def _owners(rng: np.random.Generator, count: int, most: int) -> Any:
    """Draw the persons of rows, nobody more often than `most` times; the last six rows have no owner."""
    drawn = np.repeat(np.arange(1, PEOPLE + 1), rng.binomial(most, rng.beta(1, 3, PEOPLE)))
    chosen = np.sort(rng.permutation(drawn)[:count])
    return np.concatenate([chosen, [-1, -1, -1, 900_001, 900_002, 900_003]])


def fill(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the tables; -1 stands for no person while arrays are built."""
    rng = np.random.default_rng(2021)
    tables: dict[str, dict[str, Any]] = {}
    tables["person"] = {
        "person_id": np.arange(1, PEOPLE + 1),
        "gender_concept_id": rng.choice([8507, 8532], PEOPLE),
        "year_of_birth": rng.integers(1930, 2011, PEOPLE),
        "race_concept_id": rng.choice([8515, 8516, 8527], PEOPLE, p=[0.2, 0.3, 0.5]),
        "care_site_id": rng.integers(1, 5, PEOPLE),
    }
    owner = _owners(rng, 2000, 10)
    start, length = _days(rng, owner.size), rng.integers(0, 15, owner.size)
    kind = rng.choice(_of("Visit"), owner.size, p=[0.2, 0.65, 0.15])
    tables["visit_occurrence"] = {
        "visit_occurrence_id": np.arange(1, owner.size + 1),
        "person_id": owner,
        "visit_concept_id": kind,
        "visit_start_date": start,
        "visit_end_date": start + np.where(kind == 9201, length, 0),
        "care_site_id": rng.integers(1, 5, owner.size),
    }
    for table, domain, most in (("condition", "Condition", 8), ("drug", "Drug", 8), ("measurement", "Measurement", 12)):
        owner = _owners(rng, 1800, most)
        start = _days(rng, owner.size)
        listed = _of(domain)
        shares = np.linspace(3, 1, len(listed))
        concept = rng.choice(listed, owner.size, p=shares / shares.sum())
        rows = {"person_id": owner, f"{table}_concept_id": concept}
        if table == "condition":
            rows["condition_start_date"] = start
            tables["condition_occurrence"] = {"condition_occurrence_id": np.arange(owner.size), **rows}
        elif table == "drug":
            rows |= {"drug_exposure_start_date": start, "days_supply": rng.choice([7, 14, 30, 60, 90], owner.size)}
            rows |= {"quantity": rng.integers(1, 181, owner.size) / 2}
            tables["drug_exposure"] = {"drug_exposure_id": np.arange(owner.size), **rows}
        else:
            mean, spread = np.array([MEANS[number] for number in concept]).T
            value = np.clip(np.round(rng.normal(mean, spread), 1), 0, 250)
            rows |= {"measurement_date": start, "value_as_number": np.where(rng.random(owner.size) < 0.05, -1, value)}
            tables["measurement"] = {"measurement_id": np.arange(owner.size), **rows}
    dead = rng.choice(np.arange(1, PEOPLE + 1), 60, replace=False)
    tables["death"] = {"person_id": np.sort(dead), "death_date": _days(rng, 60)}
    for name, columns in tables.items():
        connection.register("made", {k: v.astype("M8[us]") if v.dtype.kind == "M" else v for k, v in columns.items()})
        changes = "nullif(person_id, -1) AS person_id" + (
            ", nullif(value_as_number, -1) AS value_as_number" if name == "measurement" else ""
        )
        changes += "".join(f", {column}::DATE AS {column}" for column in columns if column.endswith("_date"))
        connection.execute(f"CREATE TABLE {name} AS SELECT * REPLACE ({changes}) FROM made")
        connection.unregister("made")
    connection.execute("CREATE TABLE concept (concept_id BIGINT, concept_name VARCHAR, domain_id VARCHAR)")
    groups = [(number, name, "Group") for number, (name, _) in ANCESTORS.items()]
    insert_rows(connection, "concept", [*CONCEPTS, *groups])
    connection.execute("CREATE TABLE concept_ancestor (ancestor_concept_id BIGINT, descendant_concept_id BIGINT)")
    pairs = [(above, below) for above, (_, listed) in ANCESTORS.items() for below in listed]
    insert_rows(connection, "concept_ancestor", pairs)
    connection.execute(
        "CREATE TABLE care_site AS SELECT * FROM (VALUES (1::BIGINT, 'North clinic', 'Office'), (2, 'South clinic', "
        "'Office'), (3, 'Harbor hospital', 'Hospital'), (4, 'Hill hospital', 'Hospital')) "
        "AS t(care_site_id, care_site_name, place_of_service)"
    )
