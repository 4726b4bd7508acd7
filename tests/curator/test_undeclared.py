"""An estimate warns of constants that a column never equals, such as a name in the wrong case."""

from typing import Any

import pytest

NORTH = "region is never 'north', which is not among its declared values. Did you mean 'North'?"
WEST = "region is never 'West', which is not among its declared values. Did you mean 'East'?"
UNLIKE = "region is never 'x', which is not among its declared values."
COUNT = "SELECT COUNT(*) AS n FROM visits"


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        (f"{COUNT} WHERE region = 'north'", [NORTH]),
        (f"{COUNT} WHERE 'north' = region", [NORTH]),
        (f"{COUNT} WHERE region <> 'north'", [NORTH]),
        (f"{COUNT} WHERE region = 'North' AND NOT region IN ('South', 'north', 'x')", [NORTH, UNLIKE]),
        ("SELECT COUNT(*) FILTER (WHERE region = 'West') AS n FROM visits", [WEST]),
        ("SELECT SUM(CASE WHEN region = 'north' THEN 1 ELSE 0 END) AS n FROM visits", [NORTH]),
        ("SELECT CASE region WHEN 'north' THEN 'N' ELSE 'S' END AS k, COUNT(*) AS n FROM visits GROUP BY k", [NORTH]),
        ("SELECT COUNT(*) AS n FROM visits JOIN regions USING (region) WHERE visits.region = 'north'", [NORTH]),
        (
            "SELECT COUNT(*) AS n FROM (SELECT patient, COUNT(*) FILTER (WHERE region = 'north') AS c FROM visits "
            "GROUP BY patient) WHERE c > 0",
            [NORTH],
        ),
        (COUNT, []),
        (f"{COUNT} WHERE region IN ('North', 'South') AND word = 'north'", []),
        (f"{COUNT} WHERE LOWER(region) = 'north' OR region IS NULL", []),
    ],
)
def test_an_estimate_warns_of_values_that_are_not_declared(session: Any, text: str, warned: list[str]) -> None:
    found = session.estimate(text, epsilon=1)
    assert list(found.never_equal) == warned
    assert [each for each in found.warnings if "declared" in each] == warned
    assert type(found).from_json(found.to_json()).never_equal == found.never_equal
