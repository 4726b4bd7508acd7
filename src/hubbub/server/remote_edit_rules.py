"""Parts of hubbub.yaml that cannot be changed remotely, even with an owner's token.

A token is easier to steal than a machine. Through the server, hubbub.yaml can be edited to change budgets and access;
data sources outside its folder, the location of the ledger, and the server settings can be changed only on the machine
itself. The rules are checked before any file that the new text names is opened, because the check of a file would
reveal that it exists and which columns it has.
"""

from collections.abc import Mapping
from pathlib import Path

from hubbub.accounting.anchor import default_path
from hubbub.config.document import expect_mapping, parse_yaml
from hubbub.engines.base import DataSource, locate
from hubbub.errors import ConfigError, HubbubError

#: Sections that cannot be changed remotely.
_FIXED = ("ledger", "server")
#: Default location of the ledger, with tokens and secrets beside it.
_LEDGER = "hubbub-ledger/ledger.db"
#: Files beside the ledger.
_OWN = ("server.db", "server.key", "versions.json", "anchor")
_REMEDY = "Edit hubbub.yaml on the machine that runs the server."


def violations(now: str, then: str, base: Path) -> list[HubbubError]:
    """Return the changes from `now` to `then` that are not allowed remotely; `base` is the folder of hubbub.yaml."""
    try:
        before, after = (expect_mapping(parse_yaml(text), "") for text in (now, then))
    except HubbubError:
        # an unparsable new text is reported by its check, before any file is opened
        return _unreadable(now)
    found: list[HubbubError] = [
        ConfigError("HB432", f"`{part}:` cannot be changed through the server.", _REMEDY)
        for part in _FIXED
        if (before.get(part) or {}) != (after.get(part) or {})
    ]
    known, kept = set(_places(before, base).values()), _protected(before, base)
    for name, place in _places(after, base).items():
        if place not in known and (place.engine.is_server or not _inside(place.path, base, kept)):
            found.append(
                ConfigError(
                    "HB432",
                    f"datasets.{name}.source is outside the folder of hubbub.yaml.",
                    _REMEDY,
                )
            )
    return found


def _unreadable(now: str) -> list[HubbubError]:
    try:
        expect_mapping(parse_yaml(now), "")
    except HubbubError:
        return [
            ConfigError(
                "HB432", "The current hubbub.yaml is invalid and cannot be changed through the server.", _REMEDY
            )
        ]
    return []


def _places(document: Mapping[str, object], base: Path) -> dict[str, DataSource]:
    """Return the locations of the datasets; invalid sources are left to the check, which rejects them unread."""
    found: dict[str, DataSource] = {}
    entries = document.get("datasets")
    for name, entry in (entries if isinstance(entries, dict) else {}).items():
        try:
            found[str(name)] = locate(expect_mapping(entry, "").get("source"), "", base=base, name=str(name))
        except HubbubError:
            continue
    return found


def _protected(document: Mapping[str, object], base: Path) -> list[Path]:
    """Return the paths that must not become data sources: ledger, tokens, secrets, and server files."""
    ledger, server = (_texts(document.get(part)) for part in _FIXED)
    whole = document.get("server")
    tls = _texts(whole.get("tls") if isinstance(whole, dict) else None)
    database = ledger.get("database", _LEDGER)
    folder = (base / (_LEDGER if "://" in database else database)).parent
    beside = (
        [folder] if folder.resolve() != base.resolve() else [folder / each for each in (Path(database).name, *_OWN)]
    )
    named = [
        ledger.get("anchor"),
        ledger.get("seeds"),
        server.get("secret_file"),
        tls.get("certificate"),
        tls.get("key"),
    ]
    home = default_path(base / (_LEDGER if "://" in database else database))
    every = (*beside, home, (base / _LEDGER).parent, *(base / each for each in named if each))
    return [each.resolve() for each in every]


def _texts(value: object) -> dict[str, str]:
    entries = value if isinstance(value, dict) else {}
    return {str(name): each for name, each in entries.items() if isinstance(each, str)}


def _inside(path: Path, base: Path, kept: list[Path]) -> bool:
    """Return whether a path, with links followed, is inside the folder and not a protected file."""
    target = path.resolve()
    # compare name prefixes, because a database has its log beside it
    return target.is_relative_to(base.resolve()) and not any(
        target.is_relative_to(each) or (target.parent == each.parent and target.name.startswith(each.name))
        for each in kept
    )
