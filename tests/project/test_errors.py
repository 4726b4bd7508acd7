"""docs/errors.md lists every code, and its examples raise what they say."""

import re
from pathlib import Path

import pytest
from tests.project.error_examples import EXAMPLES, TESTED
from tests.project.error_examples.run import create_world, error_of, shown
from tests.project.errors import PAGE, ROOT, Message, codes, messages, page, without_outcomes

import hubbub


@pytest.mark.parametrize("code", sorted(EXAMPLES))
def test_an_example_raises_its_code_as_the_page_shows(code: str, tmp_path: Path) -> None:
    error = error_of(EXAMPLES[code], tmp_path)
    assert error.code == code, error
    assert error.remedy
    assert f"\n{shown(error, tmp_path)}\n" in PAGE.read_text(), "run `make errors`"


def test_the_world_of_the_examples_is_right(tmp_path: Path) -> None:
    """So that an example fails for its own reason."""
    with hubbub.open(create_world(tmp_path), analyst="ana") as h:
        assert h.estimate("SELECT COUNT(*) AS n FROM visits", epsilon="0.1").admitted


def test_every_code_has_an_example_or_a_test_that_produces_it() -> None:
    assert sorted(codes() - EXAMPLES.keys() - TESTED.keys()) == []
    assert sorted((EXAMPLES.keys() | TESTED.keys()) - codes()) == []
    assert sorted(EXAMPLES.keys() & TESTED.keys()) == []


def test_the_tests_that_are_named_exist_and_name_the_code() -> None:
    for code, test in TESTED.items():
        path, _, function = test.partition("::")
        text = (ROOT / path).read_text()
        assert re.search(rf"^\s*(async )?def {function}\(", text, re.MULTILINE), test
        assert code in text, f"{path} does not mention {code}"


#: A message does not start with these in lower case; another lower-case word is the name of a parameter or a column.
ORDINARY = re.compile(
    r"(a|all|an|another|at|could|each|every|in|it|its|more|no|not|of|only|some|the|there|these|this|to|two|what|with)\b"
)


def is_sentence(message: Message) -> bool:
    """Whether a message starts with a capital letter, a name or a value, ends as a sentence does, and has a remedy."""
    starts = re.match(r"[^\W\d_]|[\d{`'\"(|-]", message.text) and not ORDINARY.match(message.text)
    return bool(starts and message.text.endswith((".", "?", "}")) and message.remedy)


def test_every_message_is_a_sentence_with_a_remedy() -> None:
    assert [message for message in messages() if not is_sentence(message)] == []


@pytest.mark.parametrize(
    ("text", "remedy"),
    [("the file is missing.", "Add it."), ("The file is missing", "Add it."), ("It is missing.", "")],
)
def test_a_fragment_is_no_sentence(text: str, remedy: str) -> None:
    assert not is_sentence(Message("HB101", text, remedy, "here"))
    assert is_sentence(Message("HB101", "The file is missing.", "Add it.", "here"))


def test_the_page_is_that_of_the_source() -> None:
    assert without_outcomes(PAGE.read_text()) == page({}), "run `make errors`"
