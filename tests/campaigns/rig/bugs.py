"""Errors to plant: each is a small patch in the memory of a child process."""

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any


@dataclass(frozen=True)
class Bug:
    """One error: its name, the function that plants it, and its detectors (the first runs at small scale)."""

    name: str
    room: str
    plant: Callable[[], None]
    seen_by: tuple[str, ...]
    looks: tuple[str, ...]  #: detectors at full scale


@dataclass
class BugCollection:
    """The errors of one area, in the order of their definition."""

    room: str
    looks: tuple[str, ...]
    bugs: list[Bug] = field(default_factory=list)

    def bug(
        self, name: str, *seen_by: str, also: tuple[str, ...] = ()
    ) -> Callable[[Callable[[], None]], Callable[[], None]]:
        """Register an error; the decorated function plants it. Detectors in `also` run at full scale too."""

        def enter(plant: Callable[[], None]) -> Callable[[], None]:
            self.bugs.append(Bug(name, self.room, plant, seen_by, tuple(dict.fromkeys((*seen_by, *self.looks, *also)))))
            return plant

        return enter


def swap(original: Any, new: Any) -> None:
    """Replace a function or class in every module of the product and the rig."""
    found = 0
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in ("hubbub", "tests"):
            for attribute, value in list(vars(module).items()):
                if value is original:
                    setattr(module, attribute, new)
                    found += 1
    if not found:
        raise AssertionError(f"nothing to plant: {original}")


def wrap(owner: Any, name: str, around: Callable[..., Any]) -> None:
    """Wrap a method: the wrapper receives the original and the arguments."""
    old = vars(owner)[name]
    plain = old.fget if isinstance(old, property) else getattr(old, "__func__", old)

    def new(*arguments: Any, **named: Any) -> Any:
        return around(plain, *arguments, **named)

    kinds = {classmethod: classmethod, staticmethod: staticmethod, property: property}
    setattr(owner, name, kinds.get(type(old), lambda f: f)(new))


def mutate(name: str, old: str, new: str) -> None:
    """Replace one piece of a module's source; its functions run the new code wherever they are used.

    Fails unless the old code occurs exactly once.
    """
    module = import_module(name)
    path = Path(str(module.__file__))
    fresh = ModuleType(name)
    fresh.__dict__.update(__file__=module.__file__, __package__=module.__package__)
    exec(compile(replaced(path.read_text(), old, new), str(path), "exec"), fresh.__dict__)  # our own text
    _graft(vars(module), vars(fresh), name)


def replaced(source: str, old: str, new: str) -> str:
    """Replace code that occurs exactly once, however the formatter breaks its lines.

    >>> replaced("f(\\n    a,\\n    b + 1,\\n)\\n", "f(a, b + 1)", "g(a)")
    'g(a)\\n'
    """
    matches = list(_pattern(old).finditer(source))
    if len(matches) != 1:
        raise AssertionError(f"cannot plant the error: {old!r} occurs {len(matches)} times")
    return source[: matches[0].start()] + new + source[matches[0].end() :]


def _pattern(code: str) -> re.Pattern[str]:
    """Match the tokens of code with any white space between them, and with or without trailing commas."""
    tokens = re.findall(r"\w+|[^\w\s]", re.sub(r",\s*([)\]}])", r"\1", code))
    parts = [re.escape(tokens[0])]
    for before, token in pairwise(tokens):
        space = r"\s+" if before[-1].isidentifier() and token[0].isidentifier() else r"\s*"
        parts.append((r"\s*,?\s*" if token in ")]}" else space) + re.escape(token))
    start, end = (r"\b" if re.match(r"\w", token) else "" for token in (tokens[0], tokens[-1]))
    return re.compile(start + "".join(parts) + end)


def _graft(old: Mapping[str, Any], new: Mapping[str, Any], module: str) -> None:
    for name, value in new.items():
        before, after = _plain(old.get(name)), _plain(value)
        if isinstance(after, type) and after.__module__ == module and isinstance(before, type):
            _graft(vars(before), vars(after), module)
        elif isinstance(after, FunctionType) and isinstance(before, FunctionType) and after.__module__ == module:
            before.__code__ = after.__code__


def _plain(value: Any) -> Any:
    """Return the function of a property, a class method or a cached function."""
    for inner in ("fget", "func", "__func__", "__wrapped__"):
        value = getattr(value, inner, value) if not isinstance(value, type) else value
    return value


def wrap_function(original: Callable[..., Any], around: Callable[..., Any]) -> None:
    """Wrap a function everywhere it is used."""

    def new(*arguments: Any, **named: Any) -> Any:
        return around(original, *arguments, **named)

    swap(original, new)
