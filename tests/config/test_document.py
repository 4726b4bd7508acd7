import time
from fractions import Fraction

import pytest
import yaml

from hubbub.config.document import KEYS, parse_yaml
from hubbub.config.policy import LedgerPaths, ledger_paths, parse_policy, read_policy
from hubbub.errors import ConfigError

EXAMPLE = """
version: 1
datasets:
  visits:
    source: visits.parquet
    unit: {column: patient_id, groups: 5, rows: 10}
    relation: add_remove
    columns:
      region: {values: [North, South, East, West]}
      age:    {bounds: [0, 110]}
    budget: {epsilon: 6, delta: 1e-9, per_query: 0.5, renewal: {per: month, epsilon: 1.5}}
  regions: {source: regions.csv, public: true}
analysts:
  ana: {visits: {epsilon: 2}}
groups:
  interns: {members: [ana, ben], visits: {epsilon: 3}}
ledger: {database: state/ledger.sqlite, anchor: /var/lib/hubbub/visits.anchor}
"""


def test_a_document_that_is_parsed_again_is_the_same_and_a_copy() -> None:
    text = "a: &few {x: [1, 2]}\nb: {<<: *few, y: 3}\n"
    first = parse_yaml(text)
    assert isinstance(first, dict)
    first["a"]["x"].append(3)
    del first["b"]
    assert parse_yaml(text) == {"a": {"x": [1, 2]}, "b": {"x": [1, 2], "y": 3}}


def test_the_example_is_read() -> None:
    policy = parse_policy(EXAMPLE)
    caps = {cap.label: cap.budget for cap in policy.caps("ana", "visits")}
    delta = Fraction(1, 10**9)
    assert {label: (budget.epsilon, budget.delta) for label, budget in caps.items()} == {
        "query/one/visits": (Fraction(1, 2), delta),
        "analyst/ana/visits": (Fraction(2), delta),
        "group/interns/visits": (Fraction(3), delta),
        "dataset/visits": (Fraction(6), delta),
        "dataset/visits/month": (Fraction(3, 2), delta),
    }
    assert ledger_paths(parse_yaml(EXAMPLE)) == LedgerPaths("state/ledger.sqlite", "/var/lib/hubbub/visits.anchor")
    assert ledger_paths({"version": 1}) == LedgerPaths(None, None)


#: What is written into the example, where, and the code and the place that the error must name.
SLIPS: list[tuple[str, object, str, str]] = [
    ("version", 2, "HB409", "version"),
    ("version", True, "HB409", "version"),
    ("version", ..., "HB409", "version"),
    ("anlysts", {}, "HB401", "anlysts"),
    ("datasets", ..., "HB402", "datasets"),
    ("datasets", {}, "HB402", "datasets"),
    ("datasets", ["visits"], "HB403", "datasets"),
    ("datasets.visits", None, "HB403", "datasets.visits"),
    ("datasets.visits.bugdet", {}, "HB401", "datasets.visits.bugdet"),
    ("datasets.visits.budget", ..., "HB402", "datasets.visits.budget"),
    ("datasets.visits.budget.epsilon", ..., "HB402", "datasets.visits.budget.epsilon"),
    ("datasets.visits.budget.epsilon", 0, "HB404", "datasets.visits.budget.epsilon"),
    ("datasets.visits.budget.epsilon", -1, "HB404", "datasets.visits.budget.epsilon"),
    ("datasets.visits.budget.epsilon", "six", "HB404", "datasets.visits.budget.epsilon"),
    ("datasets.visits.budget.epsilon", float("nan"), "HB404", "datasets.visits.budget.epsilon"),
    ("datasets.visits.budget.epsilon", float("inf"), "HB404", "datasets.visits.budget.epsilon"),
    ("datasets.visits.budget.epsilon", True, "HB404", "datasets.visits.budget.epsilon"),
    ("datasets.visits.budget.epsilon", None, "HB404", "datasets.visits.budget.epsilon"),
    ("datasets.visits.budget.epsilon", [6], "HB404", "datasets.visits.budget.epsilon"),
    ("datasets.visits.budget.delta", 0, "HB404", "datasets.visits.budget.delta"),
    ("datasets.visits.budget.delta", 0.9, "HB404", "datasets.visits.budget.delta"),
    ("datasets.visits.budget.epsilonn", 1, "HB401", "datasets.visits.budget.epsilonn"),
    ("datasets.visits.budget.per_query", 0, "HB404", "datasets.visits.budget.per_query"),
    ("datasets.visits.budget.per_query", 7, "HB406", "datasets.visits.budget.per_query"),
    ("datasets.visits.budget.renewal", 1, "HB403", "datasets.visits.budget.renewal"),
    ("datasets.visits.budget.renewal.per", "week", "HB403", "datasets.visits.budget.renewal.per"),
    ("datasets.visits.budget.renewal.per", ..., "HB403", "datasets.visits.budget.renewal.per"),
    ("datasets.visits.budget.renewal.epsilon", ..., "HB402", "datasets.visits.budget.renewal.epsilon"),
    ("datasets.visits.budget.renewal.epsilon", 7, "HB406", "datasets.visits.budget.renewal.epsilon"),
    ("datasets.visits.budget.renewal.delta", 1e-8, "HB406", "datasets.visits.budget.renewal.delta"),
    ("datasets.visits.budget.renewal.each", 1, "HB401", "datasets.visits.budget.renewal.each"),
    ("datasets.visits.public", "yes", "HB403", "datasets.visits.public"),
    ("datasets.visits.public", True, "HB406", "datasets.visits.budget"),
    ("datasets.new visits", {}, "HB408", "datasets.'new visits'"),
    ("datasets.regions.public", ..., "HB402", "datasets.regions.budget"),
    ("analysts", None, "HB402", "analysts"),
    ("analysts.ana", 2, "HB403", "analysts.ana"),
    ("analysts.ana.visits", 2, "HB403", "analysts.ana.visits"),
    ("analysts.ana.visits.epsilon", 0, "HB404", "analysts.ana.visits.epsilon"),
    ("analysts.ana.visits.epsilon", 4, "HB406", "analysts.ana.visits.epsilon"),
    ("analysts.ana.visits.epsilon", 7, "HB406", "analysts.ana.visits.epsilon"),
    ("analysts.ana.visits.delta", 1e-8, "HB406", "analysts.ana.visits.delta"),
    ("analysts.ana.visits.per_query", 1, "HB401", "analysts.ana.visits.per_query"),
    ("analysts.ana.vists", {"epsilon": 1}, "HB405", "analysts.ana.vists"),
    ("analysts.ana.regions", {"epsilon": 1}, "HB406", "analysts.ana.regions"),
    ("analysts.a/b", {}, "HB408", "analysts.'a/b'"),
    ("groups.interns.members", ..., "HB407", "groups.interns.members"),
    ("groups.interns.members", [], "HB407", "groups.interns.members"),
    ("groups.interns.members", "ana", "HB407", "groups.interns.members"),
    ("groups.interns.members", ["ana", "ana"], "HB407", "groups.interns.members"),
    ("groups.interns.members", ["ana", 7], "HB408", "groups.interns.members[1]"),
    ("groups.interns.members", ["anna"], "HB407", "groups.interns.members[0]"),
    ("groups.interns.visits", ..., "HB402", "groups.interns"),
    ("groups.interns.visits.epsilon", 7, "HB406", "groups.interns.visits.epsilon"),
    ("groups.interns.vists", {"epsilon": 1}, "HB405", "groups.interns.vists"),
    ("groups.interns", None, "HB403", "groups.interns"),
    ("ledger.anchor", 3, "HB403", "ledger.anchor"),
    ("ledger.ancor", "x", "HB401", "ledger.ancor"),
]


@pytest.mark.parametrize(("path", "value", "code", "named"), SLIPS)
def test_a_slip_is_refused_with_its_place(path: str, value: object, code: str, named: str) -> None:
    document = yaml.safe_load(EXAMPLE)
    *folders, name = path.split(".")
    place = document
    for folder in folders:
        place = place[folder]
    if value is ...:
        del place[name]
    else:
        place[name] = value
    with pytest.raises(ConfigError) as refusal:
        read_policy(document)
    assert refusal.value.code == code
    assert refusal.value.message.startswith((f"{named} ", f"{named}="))
    assert refusal.value.remedy


def test_the_nearest_known_name_is_offered() -> None:
    for text, nearest in (("anlysts: {}", "analysts"), ("grups: {}", "groups"), ("data_sets: {}", "datasets")):
        with pytest.raises(ConfigError) as refusal:
            parse_policy("version: 1\n" + text)
        assert refusal.value.remedy == f"Did you mean {nearest!r}?"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("version: 1\nversion: 1", "HB406"),
        ("datasets: {visits: {budget: {epsilon: 1, epsilon: 2}}}", "HB406"),
        ("version: [1", "HB400"),
        ("version: \x07", "HB400"),
        ("!!python/object/apply:os.getcwd []", "HB400"),
        ("{1: 2}", "HB408"),
        ("{[1]: 2}", "HB408"),
        ("{yes: 2}", "HB408"),
        ("", "HB403"),
        ("- version", "HB403"),
        ("&a {version: *a}", "HB400"),
    ],
)
def test_text_that_is_no_such_document_is_refused(text: str, code: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        parse_policy(text)
    assert refusal.value.code == code


def test_yaml_merges_still_work() -> None:
    policy = parse_policy(
        "version: 1\ndatasets: {v: {budget: &b {epsilon: 2, delta: 1e-6}}, w: {budget: {<<: *b, epsilon: 1}}}\n"
        "analysts: {ana: {v: {epsilon: 1}, w: {epsilon: 1}}}"
    )
    assert policy.caps("ana", "w")[-1].budget.delta == Fraction(1, 10**6)


def test_the_keys_that_others_read_are_known_by_name() -> None:
    assert {"source", "unit", "relation", "columns", "public"} <= KEYS["datasets.*"]


def test_aliases_that_stand_for_billions_are_refused() -> None:
    lines = ["datasets:", "  d0: &d0 {epsilon: 1}"]
    lines += [
        f"  d{i + 1}: &d{i + 1} {{{', '.join(f'k{j}: *d{i}' for j in range(9))}}}" for i in range(9)
    ]  # nine times nine, nine times over
    for text in ("\n".join(lines), "a: &a [*a]", "a: " + "[" * 1000 + "]" * 1000):
        with pytest.raises(ConfigError) as refused:
            parse_yaml(text)
        assert refused.value.code == "HB400"
    assert parse_yaml("a: &x {b: 1}\nc: {<<: *x, d: 2}") == {"a": {"b": 1}, "c": {"b": 1, "d": 2}}


@pytest.mark.parametrize("text", ["[" * 50_000, "{a: " * 50_000, "a: " + "[" * 50_000 + "]" * 50_000, "- " * 50_000])
def test_a_text_that_opens_brackets_without_end_is_refused_at_once(text: str) -> None:
    """50,000 brackets took 24 s: at each token PyYAML looks at all that are open."""
    start = time.thread_time()
    with pytest.raises(ConfigError, match="HB400"):
        parse_yaml(text)
    assert time.thread_time() - start < 2.0


def test_a_text_of_more_than_a_million_characters_is_refused_unread() -> None:
    with pytest.raises(ConfigError, match="HB400"):
        parse_yaml("a" * 1_000_001)
    assert parse_yaml("a: " + "[" * 40 + "]" * 40) is not None


@pytest.mark.parametrize(
    "value",
    [
        "2024-02-30",
        "2001-99-99 10:00:00",
        "9" * 100_000,
        "1" + ":1" * 200_000,
        "1" + ":1" * 2_000 + ".5",
        "0b" + "_" * 1_000,
        "!!int x",
        "!!float x",
        "!!timestamp x",
        "!!binary é",
        "!!bool x",
    ],
    ids=lambda value: value[:24],
)
def test_a_value_that_cannot_be_read_is_an_error_of_the_file_at_once(value: str) -> None:
    """A day that no month has went past every handler of a bad file, and 200,000 colons took 16 s."""
    start = time.thread_time()
    with pytest.raises(ConfigError, match="HB400"):
        parse_yaml(f"datasets: {{a: {value}}}")
    assert time.thread_time() - start < 2.0
