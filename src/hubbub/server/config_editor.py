"""Edits hubbub.yaml while preserving its comments and formatting.

A change is a function on the document. It is applied twice, to the formatted text and to the plain document, and the
new text must parse to the latter; an error of the round-trip library is thus rejected, not written. A new file is
fully checked before it atomically replaces the old one, which is kept beside it.
"""

import difflib
import fcntl
import io
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError

from hubbub.accounting.filters import Budget
from hubbub.config import Config, examine
from hubbub.config.document import expect_mapping, parse_yaml, reject_unknown
from hubbub.core import numbers
from hubbub.errors import ConfigError, HubbubError
from hubbub.private_files import open_private, sync_folder
from hubbub.server import remote_edit_rules, settings

MAX_CHARACTERS = 1_000_000  # characters of a hubbub.yaml

Document = dict[str, Any]
Change = Callable[[Document], None]


class Draft(NamedTuple):
    """The current text of hubbub.yaml and its hash, from which an edit must start."""

    text: str
    hash: str


@dataclass(frozen=True)
class CheckResult:
    """The result of checking a new text: the configuration or its problems, and the diff to the current text."""

    config: Config | None
    problems: tuple[HubbubError, ...]
    diff: str


def read(path: Path) -> Draft:
    """Read the file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            "HB410", f"{path} cannot be read.", "Check its path, its permissions, and that it is UTF-8."
        ) from error
    return Draft(text, digest(text))


def digest(text: str) -> str:
    """Return the hash of a text, equal to the hash of its configuration."""
    return sha256(text.encode()).hexdigest()


def check(path: Path, text: str, *, confined: bool = False) -> CheckResult:
    """Check a text without writing it; with `confined`, apply the rules for remote edits."""
    now = read(path).text
    difference = difflib.unified_diff(now.splitlines(), text.splitlines(), "now", "then", lineterm="")
    if len(text) > MAX_CHARACTERS:
        problem = ConfigError("HB400", f"The text has more than {MAX_CHARACTERS} characters.", "Shorten it.")
        return CheckResult(None, (problem,), "")
    config, problems = check_text(path, text, now if confined else None)
    return CheckResult(config, tuple(problems), "\n".join(difference))


def rewrite(
    path: Path,
    make: Callable[[str], str],
    *,
    expected: str | None = None,
    accept: Callable[[Config], None] | None = None,
    confined: bool = False,
) -> str:
    """Compute a new text from the current one, check it, and write it; return the new hash.

    `expected` is the hash of the text that the edit is based on (HB426 if the file has changed since). `accept` is
    called when everything is checked, before anything is written; if it raises, the file stays unchanged. `confined`
    applies the rules for remote edits (`remote_edit_rules`).
    """
    with locked(path):
        now = read(path)
        if expected is not None and now.hash != expected:
            raise ConfigError(
                "HB426",
                "hubbub.yaml has changed since you read it. Nothing was written.",
                "Reload it and repeat your edit.",
            )
        text = make(now.text)
        config, problems = check_text(path, text, now.text if confined else None)
        if config is None:
            raise problems[0]
        if accept is not None:
            accept(config)
        if text != now.text:
            _replace(path, text)
        return digest(text)


def create(path: Path, text: str) -> Config:
    """Check a text, write it as a new file, and return what it says; an existing file stays as it is."""
    config, problems = check_text(path, text, None)
    if config is None:
        raise problems[0]
    draft = _write(path, text)
    try:
        path.hardlink_to(draft)  # unlike a rename, this replaces nothing
        sync_folder(path.parent)
    except FileExistsError:
        raise ConfigError(
            "HB419", f"{path} already exists.", "Stop the server with Ctrl-C and start it again to use that file."
        ) from None
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        draft.unlink()
    return replace(config, path=path)


def apply(path: Path, text: str, *, expected: str) -> str:
    """Replace the text that has the hash `expected`, or raise ConfigError; return the new hash."""
    return rewrite(path, lambda _: text, expected=expected)


def edit(path: Path, change: Change, *, accept: Callable[[Config], None] | None = None) -> str:
    """Make one change to the current file, or raise ConfigError; return the new hash."""
    return rewrite(path, lambda text: changed(text, change), accept=accept)


def changed(text: str, change: Change) -> str:
    """Apply a change to a text and preserve the formatting of the rest."""
    plain = expect_mapping(parse_yaml(text), "")
    wanted = deepcopy(plain)
    change(wanted)
    if wanted == plain:
        return text
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = 10_000
    out = io.StringIO()
    try:
        styled = yaml.load(text)
        change(styled)
        yaml.dump(styled, out)
    except YAMLError as error:
        raise _by_hand() from error
    if parse_yaml(out.getvalue()) != wanted:
        raise _by_hand()
    return out.getvalue()


def put_analyst(name: str, caps: Mapping[str, Budget]) -> Change:
    """Add an analyst with these caps by dataset; an existing analyst keeps the caps on other datasets."""

    def change(document: Document) -> None:
        entry = _entry(_part(document, "analysts"), name)
        for dataset, budget in caps.items():
            entry[dataset] = _cap(budget)

    return change


def remove_analyst(name: str) -> Change:
    """Remove an analyst, also from groups and projects; these are removed with their last member."""

    def change(document: Document) -> None:
        groups = document.get("groups") or {}
        known = name in (document.get("analysts") or {})
        for group in list(groups):
            members = groups[group]["members"]
            if name in members:
                known = True
                members.remove(name)
                if not members:
                    del groups[group]
        if not known:
            reject_unknown("HB405", f"analysts.{name}", name, "analyst", document.get("analysts") or {})
        _leave_shares(document, name)
        (document.get("analysts") or {}).pop(name, None)
        if name in (document.get("returning") or []):
            document["returning"].remove(name)
        for part in ("analysts", "groups", "projects", "returning"):
            if part in document and not document[part]:
                del document[part]

    return change


def _leave_shares(document: Document, name: str) -> None:
    """Remove an analyst from projects and from the needs of fair shares."""
    groups, projects = document.get("groups") or {}, document.get("projects") or {}
    for project in list(projects):
        if name in projects[project]["members"]:
            projects[project]["members"].remove(name)
        if not projects[project]["members"] or projects[project]["group"] not in groups:
            del projects[project]
    budgets = [cap for group in groups.values() for key, cap in group.items() if key != "members"]
    for entry in (document.get("datasets") or {}).values():
        budgets += [entry.get("budget"), (entry.get("blocks") or {}).get("budget")]
    for budget in budgets:
        fair = (budget or {}).get("fair")
        if isinstance(fair, dict) and name in (fair.get("needs") or {}):
            del fair["needs"][name]


def previous(path: Path) -> Document:
    """Read the text that the last edit replaced; empty if there is none."""
    try:
        text = path.resolve().with_name(f"{path.resolve().name}.previous").read_text(encoding="utf-8")
        return expect_mapping(parse_yaml(text), "")
    except (OSError, UnicodeDecodeError, ConfigError):
        return {}


def restore_analyst(name: str, earlier: Document) -> Change:
    """Add a removed analyst again, with the caps and groups of an earlier document, as one who returns."""
    caps = (earlier.get("analysts") or {}).get(name) or {}
    groups = {group: terms for group, terms in (earlier.get("groups") or {}).items() if name in terms["members"]}

    def change(document: Document) -> None:
        entry = _entry(_part(document, "analysts"), name)
        for dataset, cap in caps.items():
            entry[dataset] = _flow(CommentedMap(cap))
        for group, terms in groups.items():
            now = _entry(_part(document, "groups"), group)
            if not now:
                now |= {**terms, "members": _flow(CommentedSeq())}
            now["members"].append(name)
        if document.get("returning") is None:
            document["returning"] = _flow(CommentedSeq())
        document["returning"].append(name)

    return change


def raise_cap(analyst: str, dataset: str, by: Fraction) -> Change:
    """Raise an analyst's individual cap, or set a first one. The check of the new file keeps it within other caps."""

    def change(document: Document) -> None:
        groups = {name: terms for name, terms in (document.get("groups") or {}).items() if analyst in terms["members"]}
        known = document.get("analysts") or {}
        if analyst not in known and not groups:
            reject_unknown("HB405", f"analysts.{analyst}", analyst, "analyst", known)
        entry = _entry(_part(document, "analysts"), analyst)
        if dataset in entry:
            before = numbers.exact(entry[dataset]["epsilon"], f"analysts.{analyst}.{dataset}.epsilon")
            entry[dataset]["epsilon"] = _number(before + by)
            return
        for group, terms in groups.items():
            if dataset in terms:
                raise ConfigError(
                    "HB430",
                    f"{analyst} has access to {dataset} only through the group {group}.",
                    "Raise the group's cap; an individual cap would be an additional limit.",
                )
        entry[dataset] = _cap(Budget(by, Fraction(0)))

    return change


def put_group(name: str, members: Sequence[str], caps: Mapping[str, Budget]) -> Change:
    """Create or replace a group."""

    def change(document: Document) -> None:
        entry = _entry(_part(document, "groups"), name)
        for dataset in [key for key in entry if key != "members" and key not in caps]:
            del entry[dataset]
        entry["members"] = _flow(CommentedSeq(members))
        for dataset, budget in caps.items():
            fair = expect_mapping(entry.get(dataset) or {}, f"groups.{name}.{dataset}").get("fair")
            entry[dataset] = _cap(budget)
            if fair is not None:
                entry[dataset]["fair"] = fair

    return change


def remove_group(name: str) -> Change:
    """Remove a group; its members keep their individual caps."""

    def change(document: Document) -> None:
        groups = document.get("groups") or {}
        if name not in groups:
            reject_unknown("HB405", f"groups.{name}", name, "group", groups)
        del groups[name]
        if not groups:
            del document["groups"]

    return change


def _part(document: Document, name: str) -> Document:
    if document.get(name) is None:
        document[name] = CommentedMap()
    return expect_mapping(document[name], name)


def _entry(part: Document, name: str) -> Document:
    if part.get(name) is None:
        part[name] = _flow(CommentedMap())
    return expect_mapping(part[name], name)


def _cap(budget: Budget) -> Document:
    terms = {"epsilon": budget.epsilon, "delta": budget.delta}
    written: Document = _flow(CommentedMap({name: _number(value) for name, value in terms.items() if value}))
    return written


def _flow(node: Any) -> Any:
    """Write a node on one line."""
    node.fa.set_flow_style()
    return node


def _number(value: Fraction) -> int | float | str:
    """Return a YAML value that reads back as exactly this number."""
    if value.denominator == 1:
        return int(value)
    near = float(value)
    if Fraction(repr(near)) != value:
        return str(value)
    return repr(near) if "e" in repr(near) else near  # 1e-06 is text in YAML 1.1 and a number in 1.2


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock out other editors, in this and other processes."""
    try:
        guard = open_private(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        fcntl.flock(guard, fcntl.LOCK_EX)
        yield
    finally:
        os.close(guard)


def _replace(path: Path, text: str) -> None:
    target = path.resolve()  # replace the target of a link, not the link
    draft = _write(target, text)
    try:
        _keep(target)
        draft.replace(target)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()
    with suppress(OSError):  # already replaced; without the sync, a power failure may restore the old file
        sync_folder(target.parent)


def check_text(path: Path, text: str, now: str | None) -> tuple[Config | None, list[HubbubError]]:
    """Check data, policy, and server settings of a text as if it were the file.

    With `now`, the current text, the rules for remote edits are applied before any file is opened.
    """
    if now is not None and (broken := remote_edit_rules.violations(now, text, path.parent)):
        return None, broken
    draft = _write(path, text)
    try:
        config, problems = examine(draft)
    finally:
        draft.unlink()
    problems = [*problems, *settings.problems(text, path.parent)]
    return (None if problems else config), problems


def _write(path: Path, text: str) -> Path:
    """Durably write a text beside the file, with the permissions of the file if it exists."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            if path.exists():
                os.fchmod(file.fileno(), path.stat().st_mode & 0o777)
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise _unwritable(path, error) from error
    return draft


def _keep(path: Path) -> None:
    """Keep the old file as `.previous`."""
    link = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    link.hardlink_to(path)
    link.replace(path.with_name(f"{path.name}.previous"))


def _unwritable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(
        "HB428",
        f"{path} cannot be replaced ({error.strerror}).",
        "Make its folder writable for the server (a single mounted file cannot be replaced), or edit it by hand.",
    )


def _by_hand() -> ConfigError:
    return ConfigError("HB429", "This edit would also change other parts of hubbub.yaml.", "Edit the file by hand.")
