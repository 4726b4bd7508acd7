"""Run the examples in their deployment, and give the error as users see it."""

import contextlib
import io
import os
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console
from tests.project.error_examples.world import WORLD, Example

import hubbub
from hubbub.cli import build_parser
from hubbub.config import load
from hubbub.errors import HubbubError
from hubbub.server import settings


def create_world(folder: Path) -> Path:
    """Write the tables and the hubbub.yaml that the examples are about."""
    for name, text in WORLD.items():
        (folder / name).write_text(text)
    return folder / "hubbub.yaml"


@contextlib.contextmanager
def uninstalled(package: str) -> Iterator[None]:
    """Make the import of a package fail, also where it, or hubbub's server, was imported before."""
    hidden = (f"{package}.", "hubbub.server.app.")
    kept = {name: module for name, module in sys.modules.items() if f"{name}.".startswith(hidden)}
    for name in kept:
        del sys.modules[name]
    sys.modules[package] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[package]
        sys.modules.update(kept)


def run(example: Example, folder: Path) -> None:
    """Run an example in a new deployment; the current folder is `folder`."""
    path = create_world(folder)
    if example.missing:
        with uninstalled(example.missing):
            run(replace(example, missing=""), folder)
        return
    if example.kind == "yaml":
        path.write_text(example.text)
        load(path)
        for problem in settings.problems(example.text, folder):
            raise problem
        hubbub.open(path, analyst="ana").close()
        return
    if example.kind == "sh":
        for line in example.text.splitlines():
            command, *rest = shlex.split(line)[1:]
            arguments = build_parser([command]).parse_args([command, *rest])
            import_module(f"hubbub.cli.{command}").run(arguments, Console(quiet=True))
        return
    with hubbub.open(path, analyst="ana") as h:
        if example.kind == "sql":
            h.estimate(example.text, epsilon="0.1")
        else:
            names: dict[str, Any] = {"hubbub": hubbub, "h": h, "folder": folder}
            exec(compile(example.text, "example", "exec"), names)


def error_of(example: Example, folder: Path) -> HubbubError:
    """Run an example and give its error."""
    noise = io.StringIO()
    umask = os.umask(0o022)
    with contextlib.chdir(folder), contextlib.redirect_stderr(noise), contextlib.redirect_stdout(noise):
        try:
            run(example, folder)
        except HubbubError as error:
            return error
        finally:
            os.umask(umask)  # a server changes it
    raise AssertionError(f"{example.text!r} raises nothing")


def shown(error: HubbubError, folder: Path) -> str:
    """The text of an error, without what differs from run to run."""
    text = str(error).replace(str(folder), "/data")
    text = text.replace(os.environ.get("XDG_STATE_HOME", "/nowhere"), "~/.local/state")
    return re.sub(r"-[0-9a-f]{16}\.anchor", "-….anchor", text)
