"""The questions of the suites: one .sql file for each theme, one block for each question, blank lines between.

    -- name, once in the file
    --! answered; delta 1e-6; dialect snowflake; parameters [1, "a"]; noisy best; loose 0.2; keys 1; only duckdb
    SELECT …
    -- exact
    SELECT … (what plain DuckDB is asked where the same text would not do)

The first option is the expectation: `answered`, or `refused HB513`.

dialect     the dialect in which the text is written
parameters  the values of $1, $2, …
delta       the δ of the question; without it, that of the budget
noisy       columns without an interval that are compared as values
near        the relative error that values may have beyond their intervals, where a condition reads a noisy number
            (10⁻⁶ without it)
unchecked   columns that are not compared: a choice among equals
loose       accept intervals with up to this relative half-width (0.05 without it)
without     engines that refuse this question, each with its code: `without spark HB574`
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
OPTIONS = frozenset(
    {"dialect", "parameters", "delta", "noisy", "near", "unchecked", "loose", "without", "groups", "rows"}
)


@dataclass(frozen=True)
class SuiteQuestion:
    """One question: where it stands, its text, the text for plain DuckDB, its expectation and its options."""

    schema: str
    theme: str
    name: str
    text: str
    exact: str
    refused: str | None
    options: dict[str, str]

    @property
    def id(self) -> str:
        """Schema, theme and name."""
        return f"{self.schema}/{self.theme}: {self.name}"

    @property
    def asked(self) -> dict[str, Any]:
        """The options of `Session.query`."""
        given: dict[str, Any] = {name: int(self.options[name]) for name in ("groups", "rows") if name in self.options}
        given |= {name: self.options[name] for name in ("delta", "dialect") if name in self.options}
        return given | {"parameters": json.loads(self.options.get("parameters", "[]"))}

    def listed(self, option: str) -> list[str]:
        """Return the words of an option."""
        return self.options.get(option, "").split()

    def refused_by(self, engine: str) -> str | None:
        """Return the code with which an engine refuses this question, if it does."""
        words = self.listed("without")
        return dict(zip(words[::2], words[1::2], strict=True)).get(engine, self.refused)


def questions(schema: str, theme: str) -> list[SuiteQuestion]:
    """Read the questions of one theme."""
    return list(_read(HERE / schema / f"{theme}.sql"))


def themes() -> list[tuple[str, str]]:
    """List every theme with its schema."""
    return [(path.parent.name, path.stem) for path in sorted(HERE.glob("*/*.sql"))]


def waiting() -> dict[str, str]:
    """Read which questions are not answered as they should be, each with the reason (`WAITING`, by heading)."""
    reasons, reason = {}, ""
    for line in filter(None, (HERE / "WAITING").read_text().splitlines()):
        if line.startswith("# "):
            reason = line.removeprefix("# ")
        else:
            reasons[line] = reason
    return reasons


def _read(path: Path) -> Iterator[SuiteQuestion]:
    for block in filter(None, (part.strip() for part in path.read_text().split("\n\n"))):
        name, header, *lines = block.split("\n")
        first, *pairs = (pair.strip() for pair in header.removeprefix("--! ").split(";"))
        options = {key: value.strip() for key, _, value in (pair.partition(" ") for pair in pairs)}
        expectation, _, code = first.partition(" ")
        if expectation not in ("answered", "refused") or (expectation == "refused") != code.startswith("HB"):
            raise ValueError(f"{path.name}: {name}: the expectation is not `answered` or `refused HBnnn`: {first}")
        if not options.keys() <= OPTIONS:
            raise ValueError(f"{path.name}: {name}: unknown options {options.keys() - OPTIONS}")
        text, _, exact = "\n".join(lines).partition("\n-- exact\n")
        yield SuiteQuestion(
            path.parent.name, path.stem, name.removeprefix("-- "), text, exact or text, code or None, options
        )
