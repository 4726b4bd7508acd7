"""The plan file of a study: what it means, errors with lines, and the published schema."""

import json
from fractions import Fraction
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from hubbub.answers.study_file import EXAMPLE, SCHEMA, parse_study, read_study
from hubbub.core.call import parse_call
from hubbub.errors import ParameterError, QueryError

PLAN = """\
title: Visits
purpose: >
  Why
  not
epsilon: 0.3
delta: 1e-7
parts:
  north:
    sql: |
      SELECT COUNT(*) AS n   -- it's a comment
      FROM v WHERE a = '  x -- y';
  groups:
    analysis: kmeans
    arguments: {table: v, columns: [a, b], k: 3, share: 0.1, fast: yes, from: 2026-01-02, map: {x: 1}}
    weight: 2.5
  again: {sql: "SELECT COUNT(*) AS n FROM v WHERE a = '  x -- y'", title: Once more, text: Same, weight: 4}
"""


def test_a_file_is_read_exactly() -> None:
    study = parse_study(PLAN)
    assert (study.title, study.purpose, study.epsilon, study.delta) == (
        "Visits",
        "Why not",
        Fraction(3, 10),
        Fraction(1, 10**7),
    )
    north, groups, again = study.parts
    assert north.query == again.query == "SELECT COUNT(*) AS n FROM v WHERE a = '  x -- y'"
    assert parse_call(groups.query).arguments == {
        "table": "v",
        "columns": ["a", "b"],
        "k": 3,
        "share": Fraction(1, 10),
        "fast": True,
        "from": "2026-01-02",
        "map": {"x": 1},
    }
    assert [(each.name, each.line, each.title, each.weight) for each in study.parts] == [
        ("north", 8, "north", 1),
        ("groups", 12, "groups", Fraction(5, 2)),
        ("again", 16, "Once more", 4),
    ]
    # equal questions are one, with the larger weight
    assert study.questions == (groups.query, north.query)
    assert [study.share(each) for each in study.parts] == [Fraction(8, 13), Fraction(5, 13), Fraction(8, 13)]
    batch = parse_call(study.batch())
    assert batch.arguments == {"queries": [groups.query, north.query], "weights": [Fraction(5, 2), 4]}


def test_titles_texts_layout_and_order_do_not_change_the_question() -> None:
    one = parse_study("title: a\nepsilon: 1\nparts: {x: {sql: SELECT COUNT(*) FROM v}, y: {sql: SELECT 1 FROM v}}")
    other = parse_study(
        "title: b\nepsilon: 1.0\nparts:\n  y: {sql: SELECT 1 FROM v, title: t, text: u}\n"
        "  z:\n    sql: |\n      SELECT\n        COUNT(*)\n      FROM v;"
    )
    assert one.batch() == other.batch() == "CALL batch(queries => ['SELECT 1 FROM v', 'SELECT COUNT(*) FROM v'])"


GOOD = "title: t\nepsilon: 1\nparts:\n"


@pytest.mark.parametrize(
    ("text", "code", "line", "words"),
    [
        ("", "HB842", None, "empty"),
        ("title: [", "HB842", 1, "not valid YAML"),
        ("title: t\n  epsilon: 1", "HB842", 2, "not valid YAML"),
        ("- a", "HB843", 1, "not a mapping"),
        ("title: t\nparts: {a: {sql: x}}", "HB843", 1, "no 'epsilon'"),
        ("title:\nepsilon: 1\nparts: {a: {sql: x}}", "HB843", 1, "title is not text"),
        ("title: t\nepsilon: -1\nparts: {a: {sql: x}}", "HB843", 2, "is not between"),
        ("title: t\nepsilon: much\nparts: {a: {sql: x}}", "HB843", 2, "not a decimal number"),
        ("title: t\nepsilon: 1\ndelta: 2\nparts: {a: {sql: x}}", "HB843", 3, "is not between"),
        ("title: t\nepsilon: 1\nepsilon: 2", "HB843", 3, "repeats 'epsilon'"),
        (GOOD + "  a:\n    sq: x", "HB843", 5, "no key 'sq'"),
        (GOOD + "  a: {}", "HB843", 4, "needs either"),
        (GOOD + "  a:\n    sql: x\n    analysis: k", "HB843", 5, "needs either"),
        (GOOD + "  a:\n    sql: x\n    arguments: {}", "HB843", 5, "needs either"),
        (GOOD + "  a b: {sql: x}", "HB843", 4, "not a name"),
        (GOOD + "  a: {sql: x, weight: 0}", "HB843", 4, "is not between"),
        (GOOD + "  a: {sql: CALL kmeans()}", "HB843", 4, "is a CALL"),
        (GOOD + "  a: {analysis: k-means}", "HB843", 4, "not the name of an analysis"),
        (GOOD + "  a:\n    analysis: k\n    arguments:\n      x: .inf", "HB843", 7, "not a decimal number"),
        (GOOD + "  a:\n    analysis: k\n    arguments:\n      a b: 1", "HB843", 7, "not the name of an argument"),
        (GOOD + "  a: &x {sql: y}\n  b: *x", "HB843", 5, "aliases"),
        ("title: t\nepsilon: 1\nparts: {}", "HB843", 3, "1 to 1,000 parts"),
    ],
)
def test_errors_name_the_line(text: str, code: str, line: int | None, words: str) -> None:
    with pytest.raises(ParameterError) as refused:
        parse_study(text, "plan.yaml")
    error = refused.value
    assert error.code == code
    assert error.remedy
    assert words in error.message
    assert error.message.startswith("plan.yaml is" if line is None else f"plan.yaml, line {line}: ")


def test_errors_of_planning_are_located() -> None:
    study = parse_study(PLAN, "plan.yaml")
    about = QueryError("HB582", "Question 1 of the batch: kmeans has no argument called fast.", "Omit it.")
    located = study.located(about)
    assert (located.code, located.message) == (
        "HB582",
        "plan.yaml, line 12: groups: kmeans has no argument called fast. Nothing was run or charged.",
    )
    other = QueryError("HB500", "Question 7 of the batch: x.", "")
    assert study.located(other) is other


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="cannot be read"):
        read_study(tmp_path / "none.yaml")


def test_the_published_json_schema_is_the_current_one() -> None:
    """Write it anew with: hubbub study schema > docs/study.schema.json"""
    published = Path(__file__).parents[2] / "docs" / "study.schema.json"
    assert json.loads(published.read_text(encoding="utf-8")) == SCHEMA


def test_schema_and_parser_agree() -> None:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    for text in (EXAMPLE, PLAN.replace("2026-01-02", "'2026-01-02'")):
        validator.validate(yaml.safe_load(text))
    for text in (GOOD + "  a:\n    sq: x", GOOD + "  a: {}", GOOD + "  a: {sql: x, arguments: {}}", "title: t"):
        assert not validator.is_valid(yaml.safe_load(text)), text


@pytest.mark.parametrize("opened", ["[", "{", "a: [", "- "])
def test_a_file_that_is_nested_without_end_is_refused_at_once(monkeypatch: pytest.MonkeyPatch, opened: str) -> None:
    """Scanning takes time that grows with the square of the depth, so no more is read than is allowed."""
    read: list[int] = []
    scan = yaml.SafeLoader.fetch_more_tokens

    def counted(loader: yaml.SafeLoader) -> None:
        read.append(1)
        scan(loader)

    monkeypatch.setattr(yaml.SafeLoader, "fetch_more_tokens", counted)
    with pytest.raises(ParameterError, match="HB842"):
        parse_study("title: t\nparts: " + ("\n" if opened == "- " else "") + opened * 3000)
    assert len(read) < 1500


@pytest.mark.parametrize(
    "query",
    [
        "SELECT COUNT(*) FROM v /* a /* b */ WHERE c > 1 */",
        "SELECT COUNT(*) FROM v WHERE a = $$it's -- no comment$$",
        "SELECT COUNT(*) FROM v WHERE a = $tag$ /* $tag$",
        r"SELECT COUNT(*) FROM v WHERE a = E'\' -- no comment'",
    ],
)
def test_what_dialects_read_differently_is_refused(query: str) -> None:
    """Without its comments, such a query could be another one."""
    with pytest.raises(ParameterError) as refused:
        parse_study(yaml.safe_dump({"title": "t", "epsilon": 1, "parts": {"a": {"sql": query}}}))
    assert refused.value.code == "HB843"


def test_ordinary_backslashes_and_comments_are_kept() -> None:
    query = r"SELECT COUNT(*) FROM v /* one */ WHERE regexp_matches(a, '\d+') -- two"
    study = parse_study(yaml.safe_dump({"title": "t", "epsilon": 1, "parts": {"a": {"sql": query}}}))
    assert study.parts[0].query == r"SELECT COUNT(*) FROM v WHERE regexp_matches(a, '\d+')"
