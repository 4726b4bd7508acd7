"""Lists and bounds are read from CHECK expressions as databases write them, and nothing else is."""

import pytest

from hubbub.engines.constraints import read_checks


@pytest.mark.parametrize(
    ("text", "values", "bounds"),
    [
        ("((age >= 0) AND (age <= 110))", {}, {"age": ("0", "110")}),
        ("((0 < age) AND (110 > age))", {}, {"age": ("0", "110")}),
        ("(t >= '-5'::integer) AND (t <= (-1))", {}, {"t": ("-5", "-1")}),
        ("((d >= '2020-01-01'::date) AND (d <= '2021-01-01'::date))", {}, {"d": ("2020-01-01", "2021-01-01")}),
        ("(price > (0)::numeric)", {}, {}),
        (
            "((sex)::text = ANY ((ARRAY['f'::character varying, 'm'::character varying])::text[]))",
            {"sex": ("f", "m")},
            {},
        ),
        ("(n = ANY (ARRAY[1, 2]))", {"n": ("1", "2")}, {}),
        ("((a = 'x'::text) OR (b >= 0))", {}, {}),
        ("((a >= 0) OR (a <= 9))", {}, {}),
        ("(NOT ((a >= 0) AND (a <= 9)))", {}, {}),
        ("(lower(a) = ANY (ARRAY['x'::text]))", {}, {}),
        ("(a = ANY (ARRAY['x'::text, lower(b)]))", {}, {}),
        ("(a >= b)", {}, {}),
        ("this is ( no SQL", {}, {}),
    ],
)
def test_postgres_spelling(text: str, values: dict[str, tuple[str, ...]], bounds: dict[str, tuple[str, str]]) -> None:
    assert read_checks([text], "postgres") == (values, bounds)


def test_duckdb_spelling() -> None:
    assert read_checks(["(s IN ('f', 'm'))", "(b BETWEEN 1 AND 5)"], "duckdb") == ({"s": ("f", "m")}, {"b": ("1", "5")})


def test_a_list_that_is_excluded_is_not_a_list() -> None:
    assert read_checks(["(s NOT IN ('f', 'm'))"], "duckdb") == ({}, {})
