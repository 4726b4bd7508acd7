"""The plan file of a study: YAML with a title, a privacy cost, and named parts, each a SQL query or an analysis.

    title: Visits in 2026
    epsilon: 1
    parts:
      regions:
        sql: SELECT region, COUNT(*) AS n FROM visits GROUP BY region
      groups:
        analysis: kmeans
        arguments: {table: visits, columns: [age, cost], k: 4}
        weight: 2

Every error names the line. `SCHEMA` describes the file for editors; `hubbub study schema` prints it.

Tested in tests/answers/test_study_file.py.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

from hubbub.answers.arrow import library
from hubbub.answers.batch import batch_text
from hubbub.core import numbers
from hubbub.core.call import AnalysisCall
from hubbub.errors import ParameterError, QueryError

#: Most characters of a file.
MAX_CHARACTERS = 1_000_000
MAX_PARTS = 1000
_MAX_DEPTH = 50
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,99}", re.ASCII)
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*", re.ASCII)
#: Strings, quoted names, comments and white space in a query.
_PIECES = re.compile(r"""('(?:[^']|'')*'|"(?:[^"]|"")*")|(--[^\n]*|/\*.*?\*/|\s)+""", re.DOTALL)
#: What dialects read differently: a comment in a comment, a dollar quote, and a backslash before a quote.
_AMBIGUOUS = re.compile(r"""/\*(?:(?!\*/).)*/\*|\$\w*\$|\\['"]""", re.DOTALL)
_SHOWN = "hubbub study example"
_NUMBER = {"type": ["number", "string"]}
_PART: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "title": {"type": "string", "description": "Heading of the part; by default its name."},
        "text": {"type": "string", "description": "A paragraph above the answer."},
        "sql": {"type": "string", "description": "A SQL query; or"},
        "analysis": {"type": "string", "description": "The name of an analysis, such as kmeans."},
        "arguments": {"type": "object", "description": "The arguments of the analysis."},
        "weight": {**_NUMBER, "description": "How much of the privacy cost it gets, relative to the others; 1."},
    },
    "oneOf": [
        {"required": ["sql"], "not": {"required": ["arguments"]}},
        {"required": ["analysis"], "properties": {"sql": False}},
    ],
}
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "The plan file of hubbub study",
    "type": "object",
    "additionalProperties": False,
    "required": ["title", "epsilon", "parts"],
    "properties": {
        "title": {"type": "string", "description": "Title of the report."},
        "purpose": {"type": "string", "description": "A paragraph below the title."},
        "epsilon": {**_NUMBER, "description": "Privacy cost of all parts together."},
        "delta": {**_NUMBER, "description": "Most δ that may be used; by default that of the budget; 0 for pure DP."},
        "parts": {
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"pattern": f"^{_NAME.pattern}$"},
            "additionalProperties": _PART,
        },
    },
}


@dataclass(frozen=True, slots=True)
class StudyPart:
    """One part of a study: its query or CALL, and where it is in the file."""

    name: str
    query: str
    line: int
    title: str
    text: str = ""
    weight: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True)
class StudyFile:
    """A plan file that was read."""

    path: str
    title: str
    purpose: str
    epsilon: Fraction
    delta: Fraction | None
    parts: tuple[StudyPart, ...]

    @property
    def questions(self) -> tuple[str, ...]:
        """The different questions, in an order that does not depend on that of the parts."""
        return tuple(sorted({part.query for part in self.parts}))

    def batch(self) -> str:
        """Write all questions as one call. Titles, texts and the order of parts do not change it."""
        heaviest = {each: max(p.weight for p in self.parts if p.query == each) for each in self.questions}
        return batch_text(self.questions, [*heaviest.values()])

    def share(self, part: StudyPart) -> Fraction:
        """Give the share of the privacy cost that a part gets if nothing is shared."""
        heaviest = [max(p.weight for p in self.parts if p.query == each) for each in self.questions]
        return heaviest[self.questions.index(part.query)] / sum(heaviest)

    def located(self, error: ParameterError | QueryError) -> ParameterError | QueryError:
        """Say in which line the question is that an error is about."""
        found = re.match(r"Question (\d+) of the batch(: | is )", error.message)
        if found is None or not 1 <= int(found[1]) <= len(self.questions):
            return error
        part = next(each for each in self.parts if each.query == self.questions[int(found[1]) - 1])
        rest = error.message[found.end() :]
        return type(error)(error.code, f"{self.path}, line {part.line}: {part.name}{found[2]}{rest}", error.remedy)


def read_study(path: str | Path) -> StudyFile:
    """Read a plan file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise ParameterError("HB842", f"{path} cannot be read.", f"Write one with: {_SHOWN} study.yaml") from None
    return parse_study(text, str(path))


def parse_study(text: str, path: str = "study.yaml") -> StudyFile:
    r"""Parse the text of a plan file.

    >>> parse_study("title: t\nepsilon: 0.1\nparts: {n: {sql: SELECT  COUNT(*) FROM v}}").parts[0].query
    'SELECT COUNT(*) FROM v'
    """
    yaml = library("yaml")
    if len(text) > MAX_CHARACTERS:
        raise ParameterError("HB842", f"{path} has more than {MAX_CHARACTERS:,} characters.", "Split the study.")
    try:
        aliases, depth = [], 0
        for event in yaml.parse(text, yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _MAX_DEPTH:  # reading on would take minutes
                raise yaml.MarkedYAMLError(problem_mark=event.start_mark)
            aliases += [event] if isinstance(event, yaml.AliasEvent) else []
        root = None if aliases else yaml.compose(text, yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = path if mark is None else f"{path}, line {mark.line + 1}"
        raise ParameterError(
            "HB842", f"{where}: this is not valid YAML.", "Check indentation, colons and quotes there."
        ) from None
    reader = _StudyReader(path)
    if aliases:
        reader.reject(aliases[0], "aliases (*name) cannot be used in a study", "Write the value out.")
    if root is None:
        raise ParameterError("HB842", f"{path} is empty.", f"Start from: {_SHOWN}")
    return reader.study(root)


class _StudyReader:
    """Reads nodes of YAML, which know their lines."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lines: dict[int, int] = {}  #: of the keys of values, by the identity of the value

    def reject(self, node: Any, why: str, remedy: str) -> NoReturn:
        """Raise an error for a line."""
        raise ParameterError("HB843", f"{self._path}, line {node.start_mark.line + 1}: {why}.", remedy)

    def study(self, root: Any) -> StudyFile:
        """Read the whole file."""
        entries = self._mapping(root, "a study", SCHEMA["properties"], SCHEMA["required"])
        epsilon = self._number(entries["epsilon"], "epsilon", numbers.epsilon)
        delta = None
        if "delta" in entries:
            delta = self._number(entries["delta"], "delta", lambda each: numbers.in_range(each, "delta", *_DELTAS))
        named = self._mapping(entries["parts"], "parts", None, ())
        if not 1 <= len(named) <= MAX_PARTS:
            self.reject(entries["parts"], f"a study has 1 to {MAX_PARTS:,} parts", f"See: {_SHOWN}")
        return StudyFile(
            self._path,
            self._text(entries["title"], "title"),
            self._text(entries["purpose"], "purpose") if "purpose" in entries else "",
            epsilon,
            delta,
            tuple(self._part(name, node) for name, node in named.items()),
        )

    def _part(self, name: str, node: Any) -> StudyPart:
        if _NAME.fullmatch(name) is None:
            self.reject(node, f"{name[:40]!r} is not a name of a part", "Use letters, digits, - and _; a letter first.")
        given = self._mapping(node, f"part {name}", _PART["properties"], ())
        if ("sql" in given) == ("analysis" in given) or ("sql" in given and "arguments" in given):
            self.reject(node, f"part {name} needs either `sql`, or `analysis` with its `arguments`", f"See: {_SHOWN}")
        if "sql" in given:
            query = self._text(given["sql"], "sql")
            if _AMBIGUOUS.search(query):
                where = f"part {name} has a comment in a comment, a dollar quote or a backslash before a quote"
                self.reject(given["sql"], where, "Write the query without it: it may be read in two ways.")
            query = _one_line(query)
            if re.match(r"call\s", query, re.IGNORECASE):
                self.reject(given["sql"], "`sql` is a CALL", "Write `analysis:` and `arguments:` instead.")
        else:
            query = self._call(given["analysis"], given.get("arguments"))
        weight = Fraction(1)
        if "weight" in given:
            weight = self._number(given["weight"], "weight", lambda w: numbers.in_range(w, "weight", *_WEIGHTS))
        title = self._text(given["title"], "title") if "title" in given else name
        text = self._text(given["text"], "text") if "text" in given else ""
        return StudyPart(name, query, self._lines[id(node)], title, text, weight)

    def _call(self, node: Any, arguments: Any) -> str:
        name = self._text(node, "analysis").lower()
        if _WORD.fullmatch(name) is None:
            self.reject(node, f"{name[:40]!r} is not the name of an analysis", "Write a name such as kmeans.")
        given = {} if arguments is None else self._mapping(arguments, "arguments", None, ())
        for argument in given:
            if _WORD.fullmatch(argument) is None:
                self.reject(arguments, f"{argument[:40]!r} is not the name of an argument", "Correct it.")
        values = {each.lower(): self._value(value) for each, value in given.items()}
        try:
            return AnalysisCall(name, values).text()
        except QueryError as error:
            self.reject(arguments, error.message.removesuffix("."), error.remedy)

    def _mapping(self, node: Any, what: str, known: Mapping[str, Any] | None, required: Any) -> dict[str, Any]:
        if node.id != "mapping":
            self.reject(node, f"{what} is not a mapping of `name: value`", f"See: {_SHOWN}")
        entries: dict[str, Any] = {}
        for key, value in node.value:
            name = key.value if key.id == "scalar" else ""
            if not isinstance(name, str) or not name or name == "<<":
                self.reject(key, f"a key of {what} is not text", "Write a name and a colon.")
            if name in entries:
                self.reject(key, f"{what} repeats {name[:40]!r}", "Remove one of the two.")
            if known is not None and name not in known:
                near = get_close_matches(name, known, 1)
                hint = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(known)}."
                self.reject(key, f"{what} has no key {name[:40]!r}", hint)
            entries[name] = value
            self._lines[id(value)] = key.start_mark.line + 1
        missing = [name for name in required if name not in entries]
        if missing:
            self.reject(node, f"{what} has no {missing[0]!r}", f"Add a line `{missing[0]}: …`.")
        return entries

    def _text(self, node: Any, what: str) -> str:
        if node.id != "scalar" or not node.value.strip() or node.tag.endswith(":null"):
            self.reject(node, f"{what} is not text", "Write the text behind the colon, in quotes if it has a colon.")
        return str(node.value).strip()

    def _number(self, node: Any, what: str, check: Any) -> Fraction:
        if node.id != "scalar":
            self.reject(node, f"{what} is not a number", "Write a number such as 0.5.")
        try:
            return Fraction(check(node.value.strip()))
        except ParameterError as error:
            self.reject(node, error.message.removesuffix("."), error.remedy)

    def _value(self, node: Any) -> object:
        """Read an argument of an analysis; numbers are exact, and dates stay text."""
        if node.id == "sequence":
            return [self._value(each) for each in node.value]
        if node.id == "mapping":
            return {name: self._value(each) for name, each in self._mapping(node, "an argument", None, ()).items()}
        kind, text = node.tag.rpartition(":")[2], str(node.value)
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() in ("true", "yes", "on")
        if kind in ("int", "float"):
            number = self._number(node, "an argument", lambda each: numbers.exact(each, "argument"))
            return int(number) if number.denominator == 1 else number
        return text


_DELTAS = (Fraction(0), numbers.DELTA_MAX)
_WEIGHTS = (Fraction(1, 1000), Fraction(1000))


def _one_line(sql: str) -> str:
    r"""Write a query in one line without comments, so that a new layout is not a new question.

    >>> _one_line("SELECT ' a  b'  -- why\n  FROM \"x  y\";")
    'SELECT \' a  b\' FROM "x  y"'
    """
    return _PIECES.sub(lambda found: found[1] or " ", sql).strip().removesuffix(";").strip()


#: What `hubbub study example` prints: a study of the demo's data.
EXAMPLE = """\
# A study: several queries and analyses with one privacy cost, planned together and paid once.
#   hubbub study plan study.yaml                  what each part gets (free)
#   hubbub study run study.yaml --to report.html  pay and write the report; running it again is free
title: Use of health services
purpose: How often people of different plans see a doctor, and which groups of people there are.
epsilon: 0.5          # of all parts together
parts:
  visits:
    title: Visits by coinsurance
    text: The more people pay themselves, the less often they see a doctor.
    sql: SELECT coinsurance, COUNT(*) AS years, AVG(visits) AS visits FROM health GROUP BY coinsurance
    weight: 2         # twice the share of the others
  ages:
    title: Ages
    sql: |
      SELECT CASE WHEN age < 18 THEN 'children' ELSE 'adults' END AS whom, COUNT(*) AS years
      FROM health
      GROUP BY whom
  rating:
    title: Who rates their health as good?
    analysis: naive_bayes
    arguments: {table: health, columns: [age, education], target: health, bins: 4}
"""
