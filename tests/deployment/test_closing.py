"""A move shows the entry that closed its original; nobody can name another."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.deployment.test_import import MOVE, bring, refusal
from tests.fixtures.moved_deployment import examined, hashes, make, spend

from hubbub.accounting.chain import Entry, Mark, append
from hubbub.config import load
from hubbub.deployment import archive, closing
from hubbub.deployment.export import export

END = Mark("ab" * 16, 7, b"\1" * 32)
CLOSED = append(END.hash, 8, "forfeit", 5, config=b"\2" * 32, facts='{"moved":"a1"}')


def shown(entry: Entry) -> bool:
    return closing.proven(closing.write(entry), END, (entry.sequence, entry.hash.hex()))


def forge(folder: Path, **changes: object) -> None:
    """Write the manifest again, as somebody would who altered an archive."""
    manifest = archive.parse_manifest((folder / archive.MANIFEST).read_bytes())
    altered = replace(manifest, files=archive.file_facts(folder), **changes)  # type: ignore[arg-type]
    (folder / archive.MANIFEST).write_text(altered.text())


def test_no_other_entry_closes_a_ledger() -> None:
    assert shown(CLOSED)
    assert not shown(append(b"\3" * 32, 8, "forfeit", 5, config=b"\2" * 32, facts='{"moved":"a1"}')), "other entries"
    assert not shown(append(END.hash, 9, "forfeit", 5, config=b"\2" * 32, facts='{"moved":"a1"}')), "one is missing"
    assert not shown(append(END.hash, 8, "charge", 5, config=b"\2" * 32, facts='{"moved":"a1"}')), "a charge"
    assert not shown(append(END.hash, 8, "forfeit", 5, config=b"\2" * 32, facts="{}")), "another forfeit"
    assert not shown(CLOSED._replace(hash=b"\4" * 32)), "a hash that is only claimed"
    for broken in (b"", b"[]", b"{}", closing.write(CLOSED).replace(b'"time":5', b'"time":6')):
        assert not closing.proven(broken, END, (8, CLOSED.hash.hex()))


@pytest.mark.parametrize("later", [1, 2])
def test_a_witness_is_not_misled_by_a_forged_end(later: int, tmp_path: Path) -> None:
    """An old copy says that the newest entry of the original closed it: its later charges would be spent again."""
    config = make(tmp_path / "a", witness=f"file:{tmp_path / 'witness.log'}")
    spend(config, 1)
    export(load(config), tmp_path / "out")
    for number in range(later):
        spend(config, 2 + number)
    newest = len(hashes(config)), hashes(config)[-1].hex()
    forge(tmp_path / "out", ended=newest)
    assert refusal(tmp_path / "out", tmp_path / "b", original_is_gone=True).code == "HB881"
    (tmp_path / "out" / "closing.json").write_bytes(closing.write(CLOSED))
    forge(tmp_path / "out", ended=newest)
    assert refusal(tmp_path / "out", tmp_path / "b", original_is_gone=True).code == "HB881"
    assert not (tmp_path / "b").exists()


def test_a_move_shows_its_closing_entry(tmp_path: Path) -> None:
    config = make(tmp_path / "a", witness=f"file:{tmp_path / 'witness.log'}")
    spend(config, 1)
    manifest = export(load(config), tmp_path / "out", move=MOVE)
    fields = json.loads((tmp_path / "out" / "closing.json").read_bytes())
    assert (fields["sequence"], fields["hash"]) == manifest.ended
    bring(tmp_path / "out", tmp_path / "b")
    assert examined(tmp_path / "b" / "hubbub.yaml").sound
