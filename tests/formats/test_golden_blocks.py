"""A deployment with blocks that an earlier hubbub left behind opens, verifies and answers again at no cost.

The files in `golden/blocks` were written on 19 November 2026 and are never written again: charges on some blocks and on
all of them, a block that was closed, and a receipt that names its blocks.
"""

import json
import shutil
from pathlib import Path

import pytest

import hubbub
from hubbub.accounting.ledger import examine
from hubbub.audit.receipt import check_receipt
from hubbub.config import load
from hubbub.curator.opening import anchor_of, store_of
from hubbub.errors import QueryError

GOLDEN = Path(__file__).parent / "golden" / "blocks"


def test_versions_of_blocks_stay_valid_when_a_block_is_added(tmp_path: Path) -> None:
    """The file `block_versions.json` was written on 19 November 2026, for the data in `golden/blocks`."""
    folder = tmp_path / "deployment"
    shutil.copytree(GOLDEN, folder)
    shutil.copy(GOLDEN.with_name("block_versions.json"), folder / "ledger" / "versions.json")
    with (folder / "visits.csv").open("a") as file:
        file.write("p1,2026-04-02,4\n")
    with hubbub.open(folder / "hubbub.yaml", analyst="ana") as session:
        assert session.query("SELECT COUNT(*) FROM visits WHERE day < '2026-02-01'", epsilon="0.5").replayed
    assert json.loads((folder / "ledger" / "versions.json").read_text())["visits blocks"]["2026-04"].count("2-") == 1


def test_an_old_ledger_with_blocks_verifies_and_answers_for_free(tmp_path: Path) -> None:
    folder = tmp_path / "deployment"
    shutil.copytree(GOLDEN, folder)
    recorded = json.loads((folder / "receipt.json").read_text())
    with hubbub.open(folder / "hubbub.yaml", analyst="ana") as session:
        again = session.query("SELECT COUNT(*) FROM visits WHERE day < '2026-02-01'", epsilon="0.5")
        assert again.replayed
        assert [list(row) for row in again.rows] == [recorded["answer"]["columns"][0]["values"]]
        with pytest.raises(QueryError) as refusal:
            session.query("SELECT COUNT(*) FROM visits WHERE day >= '2026-03-01' AND day < '2026-04-01'", epsilon="0.1")
        assert refusal.value.code == "HB794"
        (view,) = session.budget()
        assert [(block.name, float(block.spent or 0), block.closed) for block in view.blocks] == [
            ("2026-01", 0.75, False),
            ("2026-02", 0.25, False),
            ("2026-03", 0.25, True),
            ("2026-04", 0.25, False),
        ]
    assert check_receipt(recorded).problems == []
    config = load(folder / "hubbub.yaml")
    store = store_of(config, read_only=True)
    try:
        assert examine(store, anchor_of(config)).sound
    finally:
        store.close()
