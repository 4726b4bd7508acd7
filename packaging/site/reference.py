"""Write pages of the reference from the program: hubbub.yaml, commands, HTTP, Python, mechanisms and decisions."""

import argparse
import importlib
import inspect
import json
import os
import pkgutil
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]


def pages() -> dict[str, str]:
    """Return the text of each page by its name."""
    return {
        "configuration": configuration(),
        "command-line": command_line(),
        "http": http(),
        "python": python(),
        "mechanisms": mechanisms(),
        "decisions": decisions(),
    }


# ── hubbub.yaml ───────────────────────────────────────────────────────────────────────────────────────────────────────


def configuration() -> str:
    """Every key of hubbub.yaml, from its JSON Schema."""
    schema = json.loads((_ROOT / "docs" / "hubbub.schema.json").read_text(encoding="utf-8"))
    rows = [f"| `{path}` | {kind} | {text} |" for path, kind, text in _keys(schema, "")]
    return "\n".join(
        (
            "# hubbub.yaml",
            "",
            "Everything that the data owner declares: data, people, bounds and budgets. `hubbub init` writes a first"
            " version, and `hubbub check` validates it and says what it guarantees. Editors that know JSON Schema"
            " complete and check the file with [hubbub.schema.json](../hubbub.schema.json).",
            "",
            "`*` stands for a name of your choice, and `[]` for each item of a list.",
            "",
            "| key | values | meaning |",
            "|---|---|---|",
            *rows,
            "",
        )
    )


def _keys(schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, str, str]]:
    for name, part in schema.get("properties", {}).items():
        where = f"{path}.{name}" if path else name
        yield where, _values(part), _cell(part.get("description", ""))
        yield from _below(part, where)
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        where = f"{path}.*" if path else "*"
        if extra.get("description"):
            yield where, _values(extra), _cell(extra["description"])
        yield from _below(extra, where)


def _below(part: Mapping[str, Any], path: str) -> Iterator[tuple[str, str, str]]:
    seen: set[str] = set()
    for variant in (part, *part.get("oneOf", ()), *part.get("anyOf", ())):
        below = list(_keys(variant, path))
        if isinstance(variant.get("items"), dict):
            below += _keys(variant["items"], f"{path}[]")
        for row in below:
            if row[0] not in seen:
                seen.add(row[0])
                yield row


def _values(part: Mapping[str, Any]) -> str:
    if "const" in part:
        return f"`{json.dumps(part['const'])}`"
    if "enum" in part:
        return ", ".join(f"`{json.dumps(value)}`" for value in part["enum"])
    for word in ("oneOf", "anyOf"):
        if word in part:
            return " or ".join(dict.fromkeys(_values(variant) for variant in part[word]))
    kinds = part.get("type", "")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    named = {"object": "keys", "array": "list", "boolean": "true or false", "string": "text", "null": "empty"}
    return ", ".join(named.get(kind, kind) for kind in kinds if kind) or ("keys" if "properties" in part else "any")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


# ── commands ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def command_line() -> str:
    """The help of every command."""
    os.environ["COLUMNS"] = "100"
    from hubbub.cli import COMMANDS, EXIT_CODES, build_parser

    parser = build_parser()
    (commands,) = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    parts = [
        "# Command line",
        "",
        "`hubbub COMMAND --help` shows the same text in a terminal. With `HUBBUB_URL` and `HUBBUB_TOKEN` set, the"
        " commands of analysts go to that server.",
        "",
        "| exit code | meaning |",
        "|---|---|",
        *[f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()],
        "",
        "| command | what it does |",
        "|---|---|",
        *[f"| [`{name}`](#hubbub-{name}) | {summary} |" for name, summary in COMMANDS.items()],
        "",
    ]
    for name in COMMANDS:
        parts += [f"## hubbub {name}", "", *_help(commands.choices[name]), ""]
    return "\n".join(parts)


def _help(parser: argparse.ArgumentParser) -> Iterator[str]:
    yield from ("```text", parser.format_help().rstrip(), "```", "")
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, part in action.choices.items():
                yield from (f"### {parser.prog} {name}", "")
                yield from _help(part)


# ── HTTP ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def http() -> str:
    """Every route of the API, from its OpenAPI document."""
    document = _openapi()
    schemas = document["components"]["schemas"]
    parts = [
        "# HTTP API",
        "",
        "A server answers under `/api/v1`. Requests carry `Authorization: Bearer TOKEN`. Every error is"
        " `application/problem+json` with a `code`, a `detail` and a `remedy` ([errors](../errors.md)). A POST takes an"
        " `Idempotency-Key`: the same key is charged once and returns the same answer. A server gives the whole OpenAPI"
        " document at `/api/v1/openapi.json`.",
        "",
    ]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            parts += [f"## {method.upper()} {path}", "", _text(operation), ""]
            rows = [
                f"| `{each['name']}` | {each['in']} | {'yes' if each.get('required') else 'no'} |"
                f" {_cell(each.get('description', ''))} |"
                for each in operation.get("parameters", ())
            ]
            if rows:
                parts += ["| parameter | in | required | meaning |", "|---|---|---|---|", *rows, ""]
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            fields = _fields(body, schemas)
            if fields:
                parts += ["| field of the body | meaning |", "|---|---|", *fields, ""]
    return "\n".join(parts)


def _openapi() -> dict[str, Any]:
    from hubbub.demo import lay_out
    from hubbub.server.app import create_app
    from hubbub.server.service import Service
    from hubbub.server.settings import Settings

    with tempfile.TemporaryDirectory() as folder:
        lay_out(Path(folder))
        service = Service(Path(folder) / "hubbub.yaml", Settings(secret=bytes(32)))
        try:
            return dict(create_app(service).openapi())
        finally:
            service.close()


def _text(operation: Mapping[str, Any]) -> str:
    return str(operation.get("description") or operation.get("summary") or "").strip()


def _fields(body: Mapping[str, Any], schemas: Mapping[str, Any]) -> list[str]:
    name = str(body.get("$ref", "")).rpartition("/")[2]
    properties = schemas.get(name, {}).get("properties", {})
    return [f"| `{key}` | {_cell(value.get('description', ''))} |" for key, value in properties.items()]


# ── Python ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def python() -> str:
    """The functions of `hubbub`, the methods of a session, and what a release offers."""
    import hubbub
    from hubbub.answers.estimate import Estimate
    from hubbub.answers.release import Release
    from hubbub.curator.session import Session

    parts = [
        "# Python",
        "",
        "`hubbub.open` and `hubbub.connect` return sessions with the same methods; `hubbub.connect_async` returns one"
        " whose methods are awaited. `h.estimates` has every analysis with its privacy cost and expected error, for"
        " free.",
        "",
        "## Functions",
        "",
    ]
    for name in ("open", "connect", "connect_async", "model"):
        parts += _described(f"hubbub.{name}", getattr(hubbub, name))
    for title, kind in (("Session", Session), ("Release", Release), ("Estimate", Estimate)):
        parts += [f"## {title}", "", _plain(inspect.getdoc(kind) or ""), ""]
        for name, member in sorted(_members(kind)):
            parts += _described(f"{title}.{name}", member)
    return "\n".join(parts)


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    for name, member in inspect.getmembers_static(kind):
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            yield name, member
        elif isinstance(member, (staticmethod, classmethod)):
            yield name, member.__func__
        elif inspect.isfunction(member):
            yield name, member


def _described(name: str, member: Any) -> list[str]:
    text = _plain(inspect.getdoc(member) or "")
    if isinstance(member, property):
        return [f"### {name}", "", text, ""]
    return [f"### {name}", "", "```python", _signature(name, member), "```", "", text, ""]


def _signature(name: str, member: Callable[..., Any]) -> str:
    signature = inspect.signature(member)
    given = [each for key, each in signature.parameters.items() if key not in ("self", "cls")]
    text = str(signature.replace(parameters=given))
    for pattern, short in ((r"\b(?:[a-z_]+\.)+(?=[A-Z])", ""), (r"Unpack\[(\w+)\]", r"\1"), (r"'", "")):
        text = re.sub(pattern, short, text)
    line = f"{name}{text}"
    if len(line) > 100:
        line = line.replace("(", "(\n    ", 1).replace(", ", ",\n    ")
    return line


def _plain(text: str) -> str:
    """Keep the sentences of a docstring: its first part, up to a theorem or an example."""
    kept = re.split(r"\n\s*(?:Theorem|Proof|>>>|Tested|Args:|Raises:)", text)[0].strip()
    parts = kept.split("\n\n")
    return "\n\n".join(f"```text\n{each}\n```" if "   " in each else each.replace("<", "&lt;") for each in parts)


# ── mechanisms ────────────────────────────────────────────────────────────────────────────────────────────────────────


def mechanisms() -> str:
    """The mechanisms, with what their docstrings prove."""
    import hubbub.mechanisms as package

    parts = [
        "# Mechanisms",
        "",
        "What queries and analyses are made of, for programs that hold data of their own. A mechanism is a frozen"
        " object that knows its privacy loss (`loss`), the event that a ledger stores (`event`), its noise (`sample`),"
        " its exact distribution (`distribution`) and its error (`error`). Nothing here charges a budget: whoever"
        " samples must account for the loss. Noise is exact integer noise from `hubbub.noise.source.system()`.",
        "",
    ]
    for module in sorted(each.name for each in pkgutil.iter_modules(package.__path__)):
        found = importlib.import_module(f"hubbub.mechanisms.{module}")
        for name, kind in sorted(vars(found).items()):
            if not (inspect.isclass(kind) and kind.__module__ == found.__name__ and hasattr(kind, "sample")):
                continue
            if inspect.isabstract(kind) or name.startswith("_") or getattr(kind, "_is_protocol", False):
                continue
            parts += [f"## {name}", "", f"`from {found.__name__} import {name}`", "", "```text"]
            parts += [re.sub(r"\n*>>>.*", "", inspect.getdoc(kind) or "", flags=re.DOTALL), "```", ""]
    return "\n".join(parts)


# ── decisions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def decisions() -> str:
    """The list of decision records."""
    rows = []
    for path in sorted((_ROOT / "docs" / "decisions").glob("*.md")):
        number, _, title = path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ").partition(" ")
        rows.append(f"| {number.rstrip(':')} | [{title}](../decisions/{path.name}) |")
    return "\n".join(
        (
            "# Decisions",
            "",
            "Why hubbub is as it is, and what else was considered.",
            "",
            "| | decision |",
            "|---|---|",
            *rows,
            "",
        )
    )
