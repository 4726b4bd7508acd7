"""Small files are replaced whole: a crash or a full disk leaves the old or the new text (`private_files`)."""

import errno
import os
import stat
from pathlib import Path

import pytest

from hubbub.private_files import replace_text


def test_the_text_is_replaced_for_the_owner_alone_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text("old")
    replace_text(path, "new ε")
    assert path.read_text(encoding="utf-8") == "new ε"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["list.json"]


def test_the_text_is_on_disk_before_its_name_and_the_name_before_the_return(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, steps = tmp_path / "list.json", list[tuple[str, bool]]()
    path.write_text("old")
    real = os.fsync

    def sync(file: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(file).st_mode) else "file"
        steps.append((kind, path.read_text() == "new"))
        real(file)

    monkeypatch.setattr(os, "fsync", sync)
    replace_text(path, "new")
    assert steps == [("file", False), ("folder", True)]


def test_a_full_disk_leaves_the_old_text_and_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "list.json"
    path.write_text("old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        replace_text(path, "new")
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["list.json"]
