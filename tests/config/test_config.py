"""hubbub.yaml: what is read from it, and what is refused, each with its place and a remedy."""

from collections.abc import Callable
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from hubbub.config import Config, examine, load
from hubbub.config.columns import read_column
from hubbub.config.policy import parse_policy
from hubbub.core.schema import Bounds, Kind, PrivacyUnit
from hubbub.core.unit import Relation
from hubbub.engines.base import Field
from hubbub.errors import ConfigError, HubbubError

Examine = Callable[[str], tuple[Config | None, list[HubbubError]]]
CSV = "text in a CSV file"


def test_a_whole_file_is_read(folder: Path) -> None:
    config = load(folder / "hubbub.yaml")
    visits = config.datasets["visits"]
    assert visits.table.unit == PrivacyUnit("patient", 5, 10, "")
    assert visits.table.relation is Relation.ADD_REMOVE
    columns = {column.name: column for column in visits.table.columns}
    assert columns["region"].values == ("North", "South")
    assert columns["region"].other == "Elsewhere"
    assert columns["age"].bounds == Bounds(Fraction(0), Fraction(110))
    assert columns["cost"].step == Fraction(1, 100)
    assert columns["notes"].hidden
    assert config.datasets["regions"].table.public
    assert config.database == folder / "hubbub-ledger" / "ledger.db"


def test_columns_that_are_not_listed_are_disabled(folder: Path) -> None:
    """A column that somebody adds to the source later must not be open to analysts by itself."""
    visits = load(folder / "hubbub.yaml").datasets["visits"]
    disabled = dict(visits.disabled)
    assert disabled["day"] == "not listed under columns"
    assert "list" in disabled
    assert disabled["notes"] == "hidden"
    assert {column.name for column in visits.table.columns} == {"patient", "region", "age", "cost", "notes"}


def test_hidden_columns_are_not_even_handed_to_the_engine(folder: Path) -> None:
    shown = [name for name, _ in load(folder / "hubbub.yaml").datasets["visits"].view.columns]
    assert shown == ["patient", "region", "age", "cost"]


def test_a_type_that_cannot_be_used_is_disabled_with_its_reason(examined: Examine, good: str) -> None:
    config, problems = examined(good.replace("notes: {hidden: true}", "list: {}"))
    assert problems == []
    assert config is not None
    assert "INTEGER[]" in dict(config.datasets["visits"].disabled)["list"]


@pytest.mark.parametrize(
    ("old", "new", "code", "where"),
    [
        ("source: visits.parquet", "source: missing.parquet", "HB411", "missing.parquet"),
        ("source: visits.parquet", "source: [1]", "HB410", "datasets.visits.source"),
        ("source: visits.parquet", "surce: visits.parquet", "HB401", "datasets.visits.surce"),
        ("unit: {column: patient, groups: 5, rows: 10}", "unit:", "HB413", "datasets.visits.unit"),
        ("unit: {column: patient, groups: 5, rows: 10}", "unit: rows", "HB403", "datasets.visits.unit"),
        ("column: patient", "column: pateint", "HB413", "pateint"),
        ("column: patient", "colum: patient", "HB401", "datasets.visits.unit.colum"),
        ("column: patient", "column: list", "HB413", "datasets.visits.columns.list"),
        ("groups: 5", "groups: 0", "HB413", "datasets.visits.unit.groups"),
        ("rows: 10", "rows: 1.5", "HB413", "datasets.visits.unit.rows"),
        ("rows: 10", "rows: true", "HB413", "datasets.visits.unit.rows"),
        ("age: {bounds: [0, 110]}", "agee: {}", "HB414", "datasets.visits.columns.agee"),
        ("bounds: [0, 110]", "bounds: [110, 0]", "HB416", "datasets.visits.columns.age.bounds"),
        ("bounds: [0, 110]", "bounds: [0]", "HB416", "datasets.visits.columns.age.bounds"),
        ("bounds: [0, 110]", "bounds: [0, .inf]", "HB416", "datasets.visits.columns.age.bounds"),
        ("bounds: [0, 110]", "bounds: [.nan, 1]", "HB416", "datasets.visits.columns.age.bounds"),
        ("bounds: [0, 110]", "bounds: [0, 1e300]", "HB416", "datasets.visits.columns.age.bounds"),
        ("bounds: [0, 110]", "bounds: [0, x]", "HB416", "datasets.visits.columns.age.bounds"),
        ("bounds: [0, 110]", "bounds: [0, 110], values: [1]", "HB416", "datasets.visits.columns.age"),
        ("bounds: [0, 110]", "type: int", "HB414", "datasets.visits.columns.age.type"),
        ("bounds: [0, 110]", "step: 2", "HB416", "datasets.visits.columns.age.step"),
        ("step: 0.01", "step: 0", "HB416", "datasets.visits.columns.cost.step"),
        ("step: 0.01", "step: 1e-14", "HB416", "datasets.visits.columns.cost.step"),
        ("values: [North, South]", "bounds: [0, 1]", "HB416", "datasets.visits.columns.region.bounds"),
        ("values: [North, South]", "values: []", "HB415", "datasets.visits.columns.region.values"),
        ("values: [North, South]", "values: [North, North]", "HB415", "datasets.visits.columns.region.values"),
        ("values: [North, South]", "values: [North, 1]", "HB415", "datasets.visits.columns.region.values[1]"),
        ("values: [North, South]", "values: [yes, no]", "HB415", "datasets.visits.columns.region.values[0]"),
        ("values: [North, South], other: Elsewhere", "other: X", "HB415", "datasets.visits.columns.region.other"),
        ("other: Elsewhere", "other: North", "HB415", "datasets.visits.columns.region.other"),
        ("hidden: true", "hidden: 1", "HB414", "datasets.visits.columns.notes.hidden"),
        ("public: true", "public: true, unit: row", "HB413", "datasets.regions.unit"),
        ("public: true", "public: true, unique: [x]", "HB414", "datasets.regions.unique"),
        ("columns:", "unique: [patient]\n    columns:", "HB414", "datasets.visits.unique"),
        ("columns:", "relation: swap\n    columns:", "HB413", "datasets.visits.relation"),
        ("epsilon: 6", "epsilon: ", "HB418", "datasets.visits.budget.epsilon"),
        ("version: 1", "version: 1\nengine: {memory: 1}", "HB417", "engine.memory"),
        ("version: 1", "version: 1\nengine: {cores: 1}", "HB401", "engine.cores"),
        ("version: 1", "version: 1\nengine: {copy: 1}", "HB417", "engine.copy"),
        ("version: 1", "version: 2", "HB409", "version"),
        ("datasets:", "dataset:", "HB401", "dataset"),
        ("  regions: {", "  VISITS: {", "HB408", "datasets.visits"),
    ],
)
def test_a_slip_is_refused_with_its_place(
    examined: Examine, good: str, old: str, new: str, code: str, where: str
) -> None:
    assert old in good
    config, problems = examined(good.replace(old, new))
    assert config is None
    assert code in [problem.code for problem in problems]
    problem = next(problem for problem in problems if problem.code == code)
    assert where in problem.message
    assert problem.remedy
    assert "CANARY" not in str(problem)


def test_everything_that_is_wrong_is_said_at_once(examined: Examine, good: str) -> None:
    text = good.replace("bounds: [0, 110]", "bounds: [1]").replace("hidden: true", "hiden: true")
    _, problems = examined(text.replace("epsilon: 2", "epsilon: "))
    assert [problem.code for problem in problems] == ["HB418", "HB416", "HB401"]


@pytest.mark.parametrize("text", ["", "- 1", "a: [", "a: 1\na: 2", "\x00", "&a [*a]"])
def test_what_is_not_a_config_is_refused(examined: Examine, text: str) -> None:
    config, problems = examined(text)
    assert config is None
    assert all(isinstance(problem, ConfigError) and problem.remedy for problem in problems)


def test_a_missing_file_says_how_to_make_one(tmp_path: Path) -> None:
    _, problems = examine(tmp_path / "hubbub.yaml")
    assert "hubbub init" in problems[0].remedy


@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        ({}, Kind.TEXT),
        ({"bounds": [0, 1]}, Kind.REAL),
        ({"type": "integer", "bounds": [0, 1]}, Kind.INTEGER),
        ({"values": [1, 2]}, Kind.INTEGER),
        ({"values": [1, 2.5]}, Kind.REAL),
        ({"values": [True]}, Kind.BOOLEAN),
        ({"values": ["a"]}, Kind.TEXT),
        ({"values": [date(2020, 1, 1)]}, Kind.DATE),
        ({"values": [datetime(2020, 1, 1, 12)]}, Kind.TIMESTAMP),
    ],
)
def test_the_type_of_a_csv_column_comes_from_its_declaration_alone(declared: dict[str, object], kind: Kind) -> None:
    column = read_column(declared, Field("x", CSV, None), "x")
    assert column is not None
    assert column.kind is kind


def test_dates_in_bounds_may_have_quotes() -> None:
    field = Field("x", "TIMESTAMP", Kind.TIMESTAMP)
    plain = read_column({"bounds": [date(2020, 1, 31), datetime(2020, 12, 31, 12, 30)]}, field, "x")
    assert read_column({"bounds": ["2020-01-31", "2020-12-31 12:30:00"]}, field, "x") == plain
    for wrong in ("2020-02-30", "31.1.2020", "2020-01-31T00:00Z", "", "20200131"):
        with pytest.raises(HubbubError, match="HB416"):
            read_column({"bounds": [wrong, "2020-12-31"]}, field, "x")


def test_numeric_keys_have_bounds_and_booleans_have_values() -> None:
    keys = read_column({"values": [3, 1, 2]}, Field("x", "INTEGER", Kind.INTEGER), "x")
    assert keys is not None
    assert keys.bounds == Bounds(Fraction(1), Fraction(3))
    flag = read_column({}, Field("x", "BOOLEAN", Kind.BOOLEAN), "x")
    assert flag is not None
    assert flag.values == (False, True)


def test_bounds_of_dates_are_days_and_of_timestamps_microseconds() -> None:
    ends = [date(1970, 1, 2), date(1971, 1, 1)]
    day = read_column({"bounds": ends}, Field("x", CSV, None), "x")
    assert day is not None
    assert day.kind is Kind.DATE
    assert day.bounds == Bounds(Fraction(1), Fraction(365))
    moment = read_column({"bounds": ends}, Field("x", "TIMESTAMP", Kind.TIMESTAMP), "x")
    assert moment is not None
    assert moment.bounds == Bounds(Fraction(86_400 * 10**6), Fraction(365 * 86_400 * 10**6))
    for wrong in ([date(1971, 1, 1), date(1970, 1, 1)], [0, 1], [date(1970, 1, 1), "x"]):
        with pytest.raises(ConfigError):
            read_column({"bounds": wrong}, Field("x", "DATE", Kind.DATE), "x")


def test_real_keys_are_exact() -> None:
    keys = read_column({"values": [0.1, 2]}, Field("x", "DOUBLE", Kind.REAL), "x")
    assert keys is not None
    assert keys.values == (Fraction(1, 10), Fraction(2))


def test_a_unit_whose_column_is_rounded_is_refused(folder: Path, examined: Examine, good: str) -> None:
    with duckdb.connect() as made:
        made.execute(
            f"COPY (SELECT * REPLACE (patient::VARCHAR::DECIMAL(18, 0) AS patient) FROM '{folder}/visits.parquet')"
            f" TO '{folder}/wide.parquet'"
        )
    _, problems = examined(good.replace("source: visits.parquet", "source: wide.parquet"))
    assert [problem.code for problem in problems] == ["HB413"]
    assert "rounded" in problems[0].message


# ── projects and fair shares ──────────────────────────────────────────────────────────────────────────────────────────

_HIP = "projects: {hip: {members: [ana], group: interns, until: 2027-01-01, visits: {epsilon: 1}}}"
_INTERNS = "groups: {interns: {members: [ana, ben], visits: {epsilon: 2}}}"


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (_HIP.replace("interns", "nurses"), "projects.hip.group is 'nurses', which is no group"),
        (_HIP.replace("group: interns, ", ""), "projects.hip.group names no group"),
        (_HIP.replace("[ana]", "[ana, cy]"), "projects.hip.members lists cy, not in interns"),
        (_HIP.replace(", visits: {epsilon: 1}", ""), "projects.hip has a cap on a dataset"),
        (_HIP.replace("2027-01-01", "soon"), "projects.hip.until is not a day"),
        (_HIP.replace("until: 2027-01-01, ", ""), "projects.hip.until is not a day"),
        (_HIP.replace("epsilon: 1", "epsilon: 2"), "groups.interns.visits.epsilon leaves nothing for the others"),
        (
            _HIP[:-1] + ", knee: {members: [ana], group: interns, until: 2027-01-01, visits: {epsilon: 0.1}}}",
            "projects.knee.members lists ana, who is in another project on visits",
        ),
        (_INTERNS.replace("epsilon: 2", "epsilon: 2, fair: equal"), "groups.interns.visits.fair is neither"),
        (_INTERNS.replace("epsilon: 2", "epsilon: 2, fair: {until: soon}"), "groups.interns.visits.fair.until is not"),
        (_INTERNS.replace("epsilon: 2", "epsilon: 2, fair: {needs: {eva: 0.1}}"), "needs.eva names nobody"),
        (_INTERNS.replace("epsilon: 2", "epsilon: 2, fair: {needs: {ben: 1}}"), "needs.ben is not a part of the"),
    ],
)
def test_projects_and_shares_that_cannot_be_kept_are_refused(lines: str, why: str) -> None:
    groups = "" if lines.startswith("groups") else _INTERNS
    with pytest.raises(ConfigError) as refusal:
        parse_policy(f"version: 1\ndatasets: {{visits: {{budget: {{epsilon: 3}}}}}}\n{groups}\n{lines}\n")
    assert (refusal.value.code, why in refusal.value.message) == ("HB475", True), refusal.value.message
