"""Arguments of a call against what an analysis takes."""

from fractions import Fraction
from typing import Any, Literal

import pytest

from hubbub.analyses.arguments import check_arguments
from hubbub.errors import QueryError


def analysis(
    setting: object,
    *,
    columns: list[str],
    share: Fraction | int = 1,
    k: int = 2,
    kind: Literal["a", "b"] = "a",
    places: dict[str, str] | None = None,
    whole: bool = True,
) -> None:
    """Take some of everything."""


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({"columns": "x"}, {"columns": ["x"]}),
        ({"columns": ["x", "y"], "k": 3}, {"columns": ["x", "y"], "k": 3}),
        ({"share": "0.2"}, {"share": Fraction(1, 5)}),
        ({"share": Fraction(1, 3), "kind": "b"}, {"share": Fraction(1, 3), "kind": "b"}),
        ({"places": None, "whole": False}, {"places": None, "whole": False}),
    ],
)
def test_what_fits_is_taken(given: dict[str, Any], taken: dict[str, Any]) -> None:
    assert check_arguments("analysis", analysis, given) == taken


@pytest.mark.parametrize(
    "given",
    [
        {"columns": 5},
        {"columns": None},
        {"columns": [1]},
        {"columns": {"x": 1}},
        {"share": "much"},
        {"share": True},
        {"k": Fraction(1, 2)},
        {"k": "3"},
        {"k": True},
        {"kind": "c"},
        {"kind": ["a"]},
        {"places": {"x": 1}},
        {"whole": 1},
    ],
)
def test_what_does_not_fit_is_refused_with_a_remedy(given: dict[str, Any]) -> None:
    with pytest.raises(QueryError) as refusal:
        check_arguments("analysis", analysis, given)
    assert refusal.value.code == "HB583"
    assert refusal.value.remedy.startswith("Expected ")
