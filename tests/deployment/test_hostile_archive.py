"""An archive that was made to do harm: it writes and removes nothing outside of what an import is for."""

import json
from pathlib import Path

import pytest
from tests.deployment.test_closing import forge
from tests.deployment.test_import import MOVE, PHRASE, bring, refusal
from tests.fixtures.moved_deployment import make, spend

from hubbub.config import load
from hubbub.deployment import sealed
from hubbub.deployment.archive import STATE_FILES
from hubbub.deployment.export import KEY_FILES, export


@pytest.fixture
def out(tmp_path: Path) -> Path:
    config = make(tmp_path / "a")
    spend(config, 1)
    export(load(config), tmp_path / "out", move=MOVE, passphrase=PHRASE)
    return tmp_path / "out"


def hide(out: Path, *names: str) -> None:
    """Put files into the secrets of an archive."""
    archive = json.loads((out / "manifest.json").read_text())["archive"]
    (out / "secrets.sealed").write_bytes(sealed.seal(dict.fromkeys(names, b"x"), PHRASE, archive))
    forge(out)


@pytest.mark.parametrize("name", ["streams/../../evil", "streams/{}/evil", "../evil", "hubbub.yaml", "streams/", "a\0"])
def test_secrets_are_keys_and_streams_alone(out: Path, tmp_path: Path, name: str) -> None:
    hide(out, name.format(tmp_path))
    assert refusal(out, tmp_path / "b", passphrase=PHRASE).code == "HB881"
    assert not (tmp_path / "b").exists()
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("name", [*STATE_FILES, *KEY_FILES])
def test_a_file_that_is_there_already_stays(out: Path, tmp_path: Path, name: str) -> None:
    hide(out, *KEY_FILES)
    beside = tmp_path / "b" / "hubbub-ledger"
    beside.mkdir(parents=True, mode=0o700)
    (beside / name).write_text("mine")
    assert refusal(out, tmp_path / "b", passphrase=PHRASE).code == "HB886"
    assert [path.name for path in beside.iterdir()] == [name]
    assert (beside / name).read_text() == "mine"


@pytest.mark.parametrize("name", ["ledger.db-wal", "state/more.json", "server.key"])
def test_files_that_no_export_writes_are_refused(out: Path, tmp_path: Path, name: str) -> None:
    (out / name).write_bytes(b"x")
    forge(out)
    assert refusal(out, tmp_path / "b").code == "HB881"


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        '{"format": 1}',
        '{"format": 1, "tables": {"tokens": {"columns": ["id"], "rows": [[{"a": 1}]]}}}',
        '{"format": 1, "tables": {"tokens": {"columns": ["id) --"], "rows": [["a"]]}}}',
    ],
)
def test_accounts_that_cannot_be_read_leave_nothing_behind(out: Path, tmp_path: Path, content: str) -> None:
    before = (out / "server.json").read_bytes()
    (out / "server.json").write_text(content)
    forge(out)
    assert refusal(out, tmp_path / "b").code == "HB881"
    (out / "server.json").write_bytes(before)
    forge(out)
    bring(out, tmp_path / "b")
