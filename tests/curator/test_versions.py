"""Versions: a name for each state of the data, never one for two, whatever becomes of the file that remembers them."""

import itertools
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from hubbub.core.secret import Secret
from hubbub.curator.session import Session
from hubbub.curator.versions import Versions
from hubbub.errors import LedgerError

Opener = Callable[..., Session]
COUNT = "SELECT COUNT(*) AS n FROM visits"


def test_names_count_states_of_the_data_and_never_show_them(tmp_path: Path) -> None:
    versions = Versions(tmp_path / "versions.json")
    x, y, again, z = (versions.name("a", Secret(content)) for content in (b"x", b"y", b"x", b"z"))
    assert [re.fullmatch(r"(\d+)-[0-9a-f]{16}", each)[1] for each in (x, y, z)] == ["1", "2", "3"]  # type: ignore[index]
    assert x == again
    assert versions.name("b", Secret(b"x")).startswith("1-")
    assert (tmp_path / "versions.json").stat().st_mode & 0o077 == 0


def test_no_state_gets_the_name_of_another_whatever_becomes_of_the_file(tmp_path: Path) -> None:
    """All 1,296 histories of four steps: a state is seen, the file is lost, restored or exchanged for another one.

    No two states ever share a name. At most 7,776 names are drawn: a false alarm has a chance below 2⁻³⁷.
    """
    states = (b"a", b"b", b"c")
    events: list[bytes | str] = [*states, "lost", "restored", "other file"]
    owner: dict[str, bytes] = {}
    for history in itertools.product(events, repeat=4):
        folder = tmp_path / "run"
        folder.mkdir()
        path, other, backup = folder / "versions.json", folder / "else.json", folder / "backup"
        for event in (b"a", "backed up", *history, b"c"):
            if event == "backed up":
                shutil.copy(path, backup)
            elif event == "lost":
                path.unlink(missing_ok=True)
            elif event == "restored":
                shutil.copy(backup, path)
            elif event == "other file":
                path, other = other, path
            else:
                assert isinstance(event, bytes)
                name = Versions(path).name("visits", Secret(event))
                assert owner.setdefault(name, event) == event
        shutil.rmtree(folder)


def test_a_name_of_an_older_hubbub_stays_what_it_was(tmp_path: Path) -> None:
    (tmp_path / "versions.json").write_text(json.dumps({"a": {b"x".hex(): 3, b"y".hex(): 2}}))
    versions = Versions(tmp_path / "versions.json")
    assert versions.name("a", Secret(b"x")) == "3"
    assert versions.name("a", Secret(b"new")).startswith("4-")


def test_refresh_gives_the_same_data_a_new_name(tmp_path: Path) -> None:
    versions = Versions(tmp_path / "versions.json")
    before = versions.name("a", Secret(b"x"))
    versions.refresh("a")
    after = versions.name("a", Secret(b"x"))
    assert (before == after, after.partition("-")[0]) == (False, "2")


@pytest.mark.parametrize("content", ["{", "[]", '{"a": 3}', '{"a": {"": "x"}}'])
def test_a_damaged_list_of_versions_is_refused_with_a_remedy(tmp_path: Path, content: str) -> None:
    (tmp_path / "versions.json").write_text(content)
    with pytest.raises(LedgerError, match="HB317"):
        Versions(tmp_path / "versions.json").name("a", Secret(b"x"))


def test_a_lost_file_does_not_replay_another_states_answer(session: Session, clinic: Path) -> None:
    """A → B → A, the file is lost, and new data C comes: B's number would be the next one, and its answer C's."""
    data, files = clinic / "visits.parquet", {}
    with duckdb.connect() as engine:
        engine.execute(f"CREATE TABLE v AS FROM '{data}'")
        for name, rows in (("A", 900), ("B", 600), ("C", 300)):
            files[name] = clinic / f"{name}.parquet"
            engine.execute(f"COPY (FROM v LIMIT {rows}) TO '{files[name]}'")
    versions = []
    for name in ("A", "B", "A"):
        shutil.copy(files[name], data)
        versions.append(session.query(COUNT, epsilon="0.5").receipt["data"][0]["version"])
    assert versions[0] == versions[2] != versions[1]
    (clinic / "hubbub-ledger" / "versions.json").unlink()
    shutil.copy(files["C"], data)
    answer = session.query(COUNT, epsilon="0.5")
    assert not answer.replayed
    assert answer.receipt["data"][0]["version"] not in versions


def test_two_files_on_one_ledger_never_give_one_name_to_two_states(clinic: Path) -> None:
    """Two servers that do not share the folder: the second sees other data than the first."""
    first, second = (Versions(clinic / f"{name}.json") for name in ("first", "second"))
    assert first.name("visits", Secret(b"old")) != second.name("visits", Secret(b"new"))
