"""Texts into tokens and statements, as PostgreSQL splits them."""

import time
from contextlib import suppress

import pytest

from hubbub.errors import ParameterError
from hubbub.gateway.lexer import MAX_STATEMENTS, joined, split, tokens


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("SELECT 1; SELECT 2;", 2),
        ("SELECT ';'; ;; -- ; \n", 1),
        ("SELECT $$;$$ /* ; /* ; */ ; */", 1),
        ("SELECT $a$ ; $b$ ; $a$, E'\\';', \";\"", 1),
        ("SELECT 'it''s;'", 1),
        (" -- nothing", 0),
        ("", 0),
    ],
)
def test_a_semicolon_ends_a_statement_only_outside_of_strings_and_comments(text: str, statements: int) -> None:
    assert len(split(text)) == statements
    assert joined(tokens(text)) == text


@pytest.mark.parametrize("text", ["'", '"', "/* /* */", "$a$ $b$", "E'\\'"])
def test_what_has_no_end_is_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="HB809"):
        tokens(text)


@pytest.mark.parametrize("unit", ["'a", "/*", "$a$", '"', "$", "e'\\", "((", "--x\n", "1e", "é$"])
def test_the_time_is_linear_in_the_length(unit: str) -> None:
    began = time.process_time()
    with suppress(ParameterError):
        tokens(unit * (100_000 // len(unit)))
    assert time.process_time() - began < 5  # a quadratic scan of these takes minutes


def test_a_text_has_a_bounded_number_of_statements() -> None:
    with pytest.raises(ParameterError, match="HB809"):
        split("SELECT 1;" * (MAX_STATEMENTS + 1))


@pytest.mark.parametrize("unit", ["a ", ";", "(", "a,", "$1+", "-- a\n"])
def test_a_text_of_a_megabyte_does_not_hold_the_event_loop(unit: str) -> None:
    began = time.process_time()
    with pytest.raises(ParameterError, match="HB809"):
        split(unit * (1_000_000 // len(unit)))
    assert time.process_time() - began < 1  # all of them take seconds
