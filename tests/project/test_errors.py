"""docs/errors.md lists every code, and its examples raise what they say."""

import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.project.error_examples import EXAMPLES, TESTED, WORLD, Example
from tests.project.errors import PAGE, ROOT, Message, codes, messages, page

import hubbub
from hubbub.cli import build_parser
from hubbub.config import load
from hubbub.errors import HubbubError
from hubbub.server import settings


def world(folder: Path) -> Path:
    """Write the tables and the hubbub.yaml that the examples are about."""
    for name, text in WORLD.items():
        (folder / name).write_text(text)
    return folder / "hubbub.yaml"


@contextmanager
def uninstalled(package: str) -> Iterator[None]:
    """Make the import of a package fail, also where it was imported before."""
    kept = {name: module for name, module in sys.modules.items() if f"{name}.".startswith(f"{package}.")}
    for name in kept:
        del sys.modules[name]
    sys.modules[package] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[package]
        sys.modules.update(kept)


def run(example: Example, folder: Path) -> None:
    path = world(folder)
    if example.missing:
        with uninstalled(example.missing):
            run(replace(example, missing=""), folder)
        return
    if example.kind == "yaml":
        path.write_text(example.text)
        load(path)
        for problem in settings.problems(example.text, folder):
            raise problem
        with hubbub.open(path, analyst="ana"):
            return
    if example.kind == "sh":
        for line in example.text.splitlines():
            command, *words = shlex.split(line)[1:]
            arguments = build_parser([command]).parse_args([command, *words])
            import_module(f"hubbub.cli.{command}").run(arguments, Console(quiet=True))
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
    assert PAGE.read_text() == page(), "run `make errors`"
