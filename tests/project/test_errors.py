"""docs/errors.md lists every code, and its examples raise what they say."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.project.error_examples import EXAMPLES, TESTED, WORLD, Example
from tests.project.errors import PAGE, ROOT, codes, messages, page

import hubbub
from hubbub.config import load
from hubbub.errors import HubbubError


def world(folder: Path) -> Path:
    """Write the tables and the hubbub.yaml that the examples are about."""
    for name, text in WORLD.items():
        (folder / name).write_text(text)
    return folder / "hubbub.yaml"


def run(example: Example, folder: Path) -> None:
    path = world(folder)
    if example.kind == "yaml":
        path.write_text(example.text)
        load(path)
        with hubbub.open(path, analyst="ana"):
            return
    with hubbub.open(path, analyst="ana") as h:
        if example.kind == "sql":
            h.estimate(example.text, epsilon="0.1")
        else:
            names: dict[str, Any] = {"hubbub": hubbub, "h": h, "folder": folder}
            exec(compile(example.text, "example", "exec"), names)


@pytest.mark.parametrize("code", sorted(EXAMPLES))
def test_an_example_raises_its_code(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(HubbubError) as raised:
        run(EXAMPLES[code], tmp_path)
    assert raised.value.code == code, raised.value
    assert raised.value.remedy


def test_the_world_of_the_examples_is_right(tmp_path: Path) -> None:
    """So that an example fails for its own reason."""
    with hubbub.open(world(tmp_path), analyst="ana") as h:
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


def test_every_message_is_a_sentence_with_a_remedy() -> None:
    """A message starts with a capital letter, a name or a value, and ends as a sentence does."""
    wrong = [
        f"{each.code} {each.module}: {each.text!r}"
        for each in messages()
        if each.text
        and not (re.match(r"[A-ZΕ`'\"{(0-9]|\w+[\w.:]*(\(| )", each.text) and each.text.rstrip()[-1] in ".!?}:")
    ]
    assert wrong == []


def test_the_page_is_that_of_the_source() -> None:
    assert PAGE.read_text() == page(), "run `make errors`"
