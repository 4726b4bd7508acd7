"""`suppress_below:` and `round_to:` of a dataset."""

from typing import Any

import pytest

from hubbub.config.disclosure import read_disclosure
from hubbub.core.disclosure import DisclosureRule
from hubbub.errors import ConfigError


@pytest.mark.parametrize(
    ("entry", "rule"),
    [
        ({}, DisclosureRule()),
        ({"suppress_below": 11}, DisclosureRule(suppress_below=11)),
        ({"round_to": 5}, DisclosureRule(round_to=5)),
        ({"round_to": "noise", "suppress_below": 5}, DisclosureRule(suppress_below=5, round_by_noise=True)),
    ],
)
def test_rules_are_read(entry: dict[str, Any], rule: DisclosureRule) -> None:
    assert read_disclosure(entry, "datasets.visits", public=False) == rule


@pytest.mark.parametrize("value", [None, 1, 0, -5, 10**7, "ten", True, 2.5])
@pytest.mark.parametrize("name", ["suppress_below", "round_to"])
def test_anything_else_is_refused(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=rf"HB866 datasets\.visits\.{name}"):
        read_disclosure({name: value}, "datasets.visits", public=False)


def test_public_datasets_have_no_rules() -> None:
    with pytest.raises(ConfigError, match="HB866"):
        read_disclosure({"round_to": 5}, "datasets.plans", public=True)


def test_the_strictest_rules_of_several_datasets_apply() -> None:
    rules = [DisclosureRule(11, 5), DisclosureRule(20, 3), DisclosureRule(round_by_noise=True)]
    assert DisclosureRule.strictest(rules) == DisclosureRule(20, 5, round_by_noise=True)
    assert DisclosureRule.strictest([]).form == {}
