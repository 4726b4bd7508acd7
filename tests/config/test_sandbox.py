"""`sandbox:` of a dataset: what is accepted, and what the error says."""

from typing import Any

import pytest

from hubbub.config.sandbox import SandboxRule, read_sandbox
from hubbub.errors import ConfigError


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (False, SandboxRule(allowed=False)),
        ("off", SandboxRule(allowed=False)),
        (True, SandboxRule()),
        ("on", SandboxRule()),
        ({"rows": 20}, SandboxRule(rows=20)),
        ({"release": 3}, SandboxRule(release=3)),
    ],
)
def test_a_rule_is_read(value: object, rule: SandboxRule) -> None:
    assert read_sandbox({"sandbox": value}, "datasets.visits", public=False) == rule


@pytest.mark.parametrize(
    "value", [None, 3, "no", {}, [], {"rows": 0}, {"rows": 10**9}, {"release": True}, {"rows": 5, "release": 3}]
)
def test_anything_else_is_refused(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"HB860 datasets\.visits\.sandbox"):
        read_sandbox({"sandbox": value}, "datasets.visits", public=False)


def test_unknown_keys_and_public_datasets_are_refused() -> None:
    with pytest.raises(ConfigError, match="HB401"):
        read_sandbox({"sandbox": {"size": 5}}, "datasets.visits", public=False)
    with pytest.raises(ConfigError, match="HB860"):
        read_sandbox({"sandbox": True}, "datasets.plans", public=True)


def test_without_a_rule_rows_are_made_up() -> None:
    assert read_sandbox({}, "datasets.visits", public=False) == SandboxRule(allowed=True, rows=None, release=None)
