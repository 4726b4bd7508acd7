"""The suites of questions: answered as plain DuckDB answers within the interval, or refused with the named code."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest
from tests.sql.suites import schemas
from tests.sql.suites.compare import differences
from tests.sql.suites.harness import Ground, files, opened
from tests.sql.suites.questions import questions, themes, waiting

THEMES = themes()
Opener = Callable[[str], Ground]


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opener]:
    """Create each schema once, with one curator on Parquet files."""
    grounds: dict[str, Ground] = {}
    with ExitStack() as stack:

        def opener(schema: str) -> Ground:
            if schema not in grounds:
                folder = tmp_path_factory.mktemp(schema)
                connection = stack.enter_context(schemas.create(schema))
                sources = files(connection, schemas.names(connection), folder)
                grounds[schema] = stack.enter_context(opened(folder, schema, "duckdb", connection, sources))
            return grounds[schema]

        yield opener


@pytest.mark.parametrize(("schema", "theme"), THEMES, ids=["-".join(pair) for pair in THEMES])
def test_every_question_is_answered_or_refused_as_its_header_says(ground: Opener, schema: str, theme: str) -> None:
    """False alarms: below 1e-6 for all questions together (see `HALF_WIDTHS`)."""
    complaints = list(ground(schema).complaints(questions(schema, theme)))
    assert not complaints, "\n".join(complaints)


def test_there_are_many_questions_and_none_is_there_twice() -> None:
    asked = [question for schema, theme in THEMES for question in questions(schema, theme)]
    assert max(Counter(question.id for question in asked).values()) == 1
    assert max(Counter((question.schema, question.text) for question in asked).values()) == 1
    late = waiting()
    assert late.keys() <= {question.id for question in asked}
    assert len(asked) >= 500
    printed = [question for question in questions("tpch", "printed") if question.id not in late]
    assert sum(question.refused is None for question in printed) >= 20


def test_a_wrong_answer_is_noticed(ground: Opener) -> None:
    """A value that is off by one, a group that is missing or too many, another order, another code."""
    place = ground("health")
    (question,) = (each for each in questions("health", "counts") if each.name == "by group in order")
    release = place.session.query(question.text, epsilon=4000)
    exact = place.exact.execute(question.text).fetchall()
    assert list(differences(question, release, exact)) == []
    first, *rest = exact
    for wrong in ([(first[0], first[1] + 1), *rest], [*exact, (7, 1)], rest, [*rest, first], [(*first, 1)]):
        assert list(differences(question, release, wrong))
    assert list(place.complaints([replace(question, refused="HB513")]))
    assert list(place.complaints([replace(question, text="SELECT person FROM health")]))
    assert list(place.complaints([replace(question, text="SELECT person FROM health", refused="HB513")]))


def test_a_question_that_no_longer_waits_is_noticed(ground: Opener) -> None:
    question = questions("health", "counts")[0]
    place = replace(ground("health"), waiting={question.id: "a reason"})
    assert list(place.complaints([question]))
