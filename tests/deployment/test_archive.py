"""An archive: every change of a byte, a name or a length is found, and nothing leads out of its folder."""

import io
import tarfile
from pathlib import Path

import pytest

from hubbub.deployment import archive
from hubbub.deployment.archive import MANIFEST, Manifest
from hubbub.errors import DeploymentError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An archive with three files."""
    made = tmp_path / "made"
    for name, content in {
        "hubbub.yaml": b"version: 1\n",
        "ledger.db": b"\0" * 99,
        "state/versions.json": b"{}",
    }.items():
        archive.write_file(made / name, io.BytesIO(content))
    manifest = Manifest(
        archive="a1",
        made_by="0.1.0",
        ledger="f3",
        sequence=2,
        hash="00" * 32,
        ended=None,
        left_out=("the data",),
        files=archive.file_facts(made),
    )
    archive.write_file(made / MANIFEST, io.BytesIO(manifest.text().encode()))
    return made


def refused(folder: Path, fingerprint: str | None = None) -> str:
    with pytest.raises(DeploymentError) as caught:
        archive.read_archive(folder, fingerprint)
    return caught.value.code


def test_an_archive_is_read_as_it_was_written(folder: Path, tmp_path: Path) -> None:
    manifest = archive.read_archive(folder)
    assert manifest.files["hubbub.yaml"][0] == len(b"version: 1\n")
    assert archive.read_archive(folder, manifest.fingerprint.upper() + "\n") == manifest
    archive.pack(folder, tmp_path / "a.tar.gz")
    assert (tmp_path / "a.tar.gz").stat().st_mode & 0o077 == 0
    archive.unpack(tmp_path / "a.tar.gz", tmp_path / "again")
    assert archive.read_archive(tmp_path / "again", manifest.fingerprint) == manifest


@pytest.mark.parametrize("name", ["hubbub.yaml", "ledger.db", "state/versions.json", MANIFEST])
def test_every_change_of_a_byte_is_found(folder: Path, name: str) -> None:
    path = folder / name
    content = path.read_bytes()
    fingerprint = archive.read_archive(folder).fingerprint
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        assert refused(folder, fingerprint) in ("HB881", "HB882")
    for cut in (content[:-1], content + b"\n"):
        path.write_bytes(cut)
        assert refused(folder, fingerprint) in ("HB881", "HB882")
    path.unlink()
    assert refused(folder) == "HB881"


def test_a_file_that_was_added_is_found(folder: Path) -> None:
    (folder / "state" / "more.json").write_text("{}")
    assert refused(folder) == "HB881"
    (folder / "state" / "more.json").unlink()
    (folder / "link").symlink_to("/etc/hostname")
    assert refused(folder) == "HB881"


def test_another_archive_has_another_fingerprint(folder: Path) -> None:
    """Consistent in itself, but not the one that was exported."""
    before = archive.read_archive(folder)
    (folder / "hubbub.yaml").write_bytes(b"version: 2\n")
    facts = {name: fact for name, fact in archive.file_facts(folder).items() if name != MANIFEST}
    other = Manifest(**{**{k: getattr(before, k) for k in before.__dataclass_fields__}, "files": facts})
    (folder / MANIFEST).write_bytes(other.text().encode())
    assert archive.read_archive(folder) == other, "nothing tells without the fingerprint"
    assert refused(folder, before.fingerprint) == "HB882"


@pytest.mark.parametrize("name", ["../out", "/tmp/out", "a/../../out", "a\\b", "a//b"])
def test_a_name_that_leads_outside_is_refused(tmp_path: Path, name: str) -> None:
    with tarfile.open(tmp_path / "bad.tar.gz", "w:gz") as tar:
        info = tarfile.TarInfo(name)
        info.size = 1
        tar.addfile(info, io.BytesIO(b"x"))
    with pytest.raises(DeploymentError, match="HB881"):
        archive.unpack(tmp_path / "bad.tar.gz", tmp_path / "into")
    assert not (tmp_path / "out").exists()


def test_a_link_and_half_a_file_are_refused(folder: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "link.tar.gz", "w:gz") as tar:
        info = tarfile.TarInfo("hubbub.yaml")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/hostname"
        tar.addfile(info)
    with pytest.raises(DeploymentError, match="HB881"):
        archive.unpack(tmp_path / "link.tar.gz", tmp_path / "one")
    archive.pack(folder, tmp_path / "a.tar.gz")
    whole = (tmp_path / "a.tar.gz").read_bytes()
    for number, length in enumerate((0, 10, len(whole) // 2, len(whole) - 9)):
        (tmp_path / "half.tar.gz").write_bytes(whole[:length])
        with pytest.raises(DeploymentError, match="HB881"):
            archive.unpack(tmp_path / "half.tar.gz", tmp_path / f"half{number}")
