import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.accounting.conftest import as_document

from hubbub.accounting.policy import DAY, Policy
from hubbub.config.document import parse_yaml
from hubbub.config.policy import parse_policy, read_policy
from hubbub.errors import ParameterError

BASE = """
version: 1
datasets:
  visits: {budget: {epsilon: 6, delta: 1e-9, per_query: 0.5, renewal: {per: day, epsilon: 1}}}
  wards: {budget: {epsilon: 1}}
analysts:
  ana: {visits: {epsilon: 2}}
  dan: {}
groups:
  interns: {members: [ana, ben], visits: {epsilon: 3, delta: 1e-10}}
  night: {members: [ben], visits: {epsilon: 4}}
"""


def labels(policy: Policy, analyst: str, dataset: str) -> list[str]:
    return [cap.label for cap in policy.caps(analyst, dataset)]


def test_a_charge_must_pass_query_analyst_every_group_data_set_and_period() -> None:
    policy = parse_policy(BASE)
    assert labels(policy, "ana", "visits") == [
        "query/one/visits",
        "analyst/ana/visits",
        "group/interns/visits",
        "dataset/visits",
        "dataset/visits/day",
    ]
    assert labels(policy, "ben", "visits") == [
        "query/one/visits",
        "analyst/ben/visits",
        "group/interns/visits",
        "group/night/visits",
        "dataset/visits",
        "dataset/visits/day",
    ]


def test_a_member_without_an_own_cap_is_still_counted() -> None:
    (own,) = [cap for cap in parse_policy(BASE).caps("ben", "visits") if cap.scope == "analyst"]
    assert own.budget.epsilon == 6


def test_a_cap_without_a_delta_has_that_of_its_data_set() -> None:
    caps = {cap.label: cap.budget.delta for cap in parse_policy(BASE).caps("ana", "visits")}
    assert caps["analyst/ana/visits"] == caps["query/one/visits"] == Fraction(1, 10**9)
    assert caps["group/interns/visits"] == Fraction(1, 10**10)


@pytest.mark.parametrize(
    ("analyst", "dataset", "code", "remedy"),
    [
        ("ana", "vists", "HB120", "Did you mean 'visits'?"),
        ("anna", "visits", "HB121", "Did you mean 'ana'?"),
        ("ana", "wards", "HB122", "analysts.ana.wards"),
        ("dan", "visits", "HB122", "analysts.dan.visits"),
    ],
)
def test_who_has_no_budget_is_told_so(analyst: str, dataset: str, code: str, remedy: str) -> None:
    with pytest.raises(ParameterError) as refusal:
        parse_policy(BASE).caps(analyst, dataset)
    assert refusal.value.code == code
    assert remedy in refusal.value.remedy


def test_a_renewed_cap_has_a_total_for_each_calendar_period() -> None:
    cap = parse_policy(BASE).caps("ana", "visits")[-1]
    midnight = 20_000 * DAY
    assert cap.at(midnight - 1) == "dataset/visits/day/2024-10-03"
    assert cap.at(midnight) == cap.at(midnight + DAY - 1) == "dataset/visits/day/2024-10-04"
    monthly = parse_policy(BASE.replace("per: day", "per: month")).caps("ana", "visits")[-1]
    assert monthly.at(midnight) == "dataset/visits/month/2024-10"


def test_every_cap_is_listed_once() -> None:
    assert sorted(cap.label for cap in parse_policy(BASE).every_cap()) == [
        "analyst/ana/visits",
        "analyst/ben/visits",
        "dataset/visits",
        "dataset/visits/day",
        "dataset/wards",
        "group/interns/visits",
        "group/night/visits",
    ]


def test_the_hash_is_that_of_the_meaning() -> None:
    policy = parse_policy(BASE)
    reordered = """
groups:
  night: {visits: {epsilon: "4.0", delta: 0.000000001}, members: [ben]}
  interns: {visits: {delta: 1e-10, epsilon: 6/2}, members: [ben, ana]}
analysts: {dan: {}, ben: {}, ana: {visits: {delta: 1e-9, epsilon: 2.000}}}
datasets:
  wards: {source: wards.csv, budget: {epsilon: 1}}
  visits: {budget: {renewal: {epsilon: 1, per: day}, epsilon: 6, delta: "1e-9", per_query: 1/2}}
version: 1
"""
    assert parse_policy(reordered).text == policy.text
    assert parse_policy(reordered).hash == policy.hash
    for old, new in (("epsilon: 2", "epsilon: 1"), ("per: day", "per: month"), ("[ben]", "[ana]"), ("0.5", "0.25")):
        assert parse_policy(BASE.replace(old, new)).hash != policy.hash


amounts = st.fractions(min_value=Fraction(1, 1000), max_value=1000, max_denominator=1000)


@given(lifetime=amounts, query=amounts, own=amounts, group=amounts)
def test_the_canonical_form_reads_back_as_the_same_policy(
    lifetime: Fraction, query: Fraction, own: Fraction, group: Fraction
) -> None:
    group = min(group, lifetime)
    document = {
        "version": 1,
        "datasets": {"visits": {"budget": {"epsilon": str(lifetime), "per_query": str(min(query, lifetime))}}},
        "analysts": {"ana": {"visits": {"epsilon": str(min(own, group))}}},
        "groups": {"g": {"members": ["ana", "bob"], "visits": {"epsilon": str(group)}}},
    }
    policy = read_policy(document)
    again = read_policy(parse_yaml(as_document(policy)))
    assert again.text == policy.text
    assert [again.caps(a, "visits") for a in ("ana", "bob")] == [policy.caps(a, "visits") for a in ("ana", "bob")]


def recorded() -> dict[str, object]:
    """Give the record of a policy that has every part."""
    text = BASE.replace("per_query: 0.5", "per_query: 0.5, show: exact") + "returning: [dan]\n"
    record: dict[str, object] = json.loads(parse_policy(text).text)
    return record | {"declarations": {"visits": {"public": False}, "wards": {"public": False}}}


def test_a_recorded_policy_is_read_as_it_was_written() -> None:
    assert json.loads(Policy.from_record(recorded()).text) == recorded()


def test_a_recorded_policy_may_have_only_public_datasets() -> None:
    record = {"version": 1, "datasets": {}, "analysts": {}, "groups": {}, "declarations": {"regions": {"public": True}}}
    assert json.loads(Policy.from_record(record).text) == record


ONE = {"epsilon": "1"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("datasets:visits:budget:per_query", "7"),
        ("datasets:visits:budget:renewal:epsilon", "7"),
        ("datasets:visits:budget:renewal:delta", "1/10"),
        ("datasets:visits:budget:renewal:per", "year"),
        ("datasets:visits:budget:renewal:per", ""),
        ("datasets:visits:budget:show", "loud"),
        ("datasets:visits:budget:show", "rounded"),
        ("datasets:visits:budget:show", None),
        ("datasets:a/b", {"budget": ONE}),
        ("analysts:ana:visits:epsilon", "7"),
        ("analysts:ana:visits:epsilon", "7/2"),  # the group of ana has 3
        ("analysts:ana:visits:delta", "1/10"),
        ("analysts:ana:wards", ONE | {"delta": "1/10"}),
        ("analysts:dan:visits", {"epsilon": "7"}),
        ("analysts:a/b", {}),
        ("analysts:a b", {}),
        ("analysts:", {}),
        ("groups:night:visits:epsilon", "7"),
        ("groups:night:visits:delta", "1/10"),
        ("groups:night:members", ["eve"]),
        ("groups:night:members", []),
        ("groups:night:members", ["ben", "ben"]),
        ("groups:night:members", {"ben": 1}),
        ("groups:night", {"members": ["ben"]}),
        ("groups:a/b", {"members": ["ben"], "visits": ONE}),
        ("returning", ["eve"]),
        ("returning", ["dan", "dan"]),
        ("returning", {"dan": 1}),
        ("declarations", ["visits"]),
        ("declarations", None),
        ("declarations:visits", ["public"]),
        ("declarations:a/b", {"public": False}),
    ],
)
def test_a_recorded_policy_that_the_configuration_would_refuse_is_refused(path: str, value: object) -> None:
    record = recorded()
    *parents, name = path.split(":")
    inner: object = record
    for parent in parents:
        assert isinstance(inner, dict)
        inner = inner[parent]
    assert isinstance(inner, dict)
    inner[name] = value
    with pytest.raises(ValueError, match="The recorded policy has"):
        Policy.from_record(record)


def test_a_recorded_policy_without_datasets_is_refused() -> None:
    record = {"version": 1, "datasets": {}, "analysts": {}, "groups": {}}
    for declarations in ({}, {"visits": {"public": False}}):
        with pytest.raises(ValueError, match="has no dataset"):
            Policy.from_record(record | {"declarations": declarations})
