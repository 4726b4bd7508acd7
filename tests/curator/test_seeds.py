"""Seeds: whole or absent, for this user alone, erased for real."""

import os
import time
from pathlib import Path

import pytest

from hubbub.accounting.chain import Entry, append
from hubbub.curator.seeds import OLDEST, Seeds, seed_folder
from hubbub.errors import LedgerError

LEDGER = "f" * 32
RUN_HASH = bytes(range(32))


def charge(number: int) -> Entry:
    return append(bytes(32), number, "charge", 0, config=bytes(32), facts="{}")


@pytest.fixture
def seeds(tmp_path: Path) -> Seeds:
    return Seeds(tmp_path / "seeds", LEDGER)


def file_of(seeds: Seeds, number: int) -> Path:
    (found,) = seeds.folder.glob(f"{LEDGER}-{number}-*")
    return found


def test_a_seed_is_found_as_it_was_made_by_another_process_s_seeds(seeds: Seeds) -> None:
    made = seeds.make(charge(1), RUN_HASH)
    assert (len(made.secret), made.run_hash) == (32, RUN_HASH)
    assert Seeds(seeds.folder, LEDGER).find(charge(1)) == made
    assert seeds.find(charge(2)) is None
    assert seeds.make(charge(2), RUN_HASH).secret != made.secret


def test_files_and_folder_are_for_this_user_alone(seeds: Seeds) -> None:
    old = os.umask(0)
    try:
        other = Seeds(seeds.folder.parent / "other", LEDGER)
        other.make(charge(1), RUN_HASH)
    finally:
        os.umask(old)
    assert other.folder.stat().st_mode & 0o777 == 0o700
    assert [path.stat().st_mode & 0o777 for path in other.folder.iterdir()] == [0o600]


def test_a_name_is_never_given_to_another_seed(seeds: Seeds) -> None:
    first = seeds.make(charge(1), RUN_HASH)
    seeds.make(charge(1), RUN_HASH)
    assert seeds.find(charge(1)) == first
    assert len(list(seeds.folder.iterdir())) == 1


def test_a_charge_that_got_an_old_number_again_has_no_seed(seeds: Seeds) -> None:
    """After a forfeit the numbers of an older database come again, with other hashes."""
    seeds.make(charge(1), RUN_HASH)
    again = append(bytes(32), 1, "charge", 1, config=bytes(32), facts="{}")
    assert seeds.find(again) is None


@pytest.mark.parametrize("length", [0, 1, 32, 64, 95, 97])
def test_a_seed_that_is_not_whole_counts_as_absent(seeds: Seeds, length: int) -> None:
    seeds.make(charge(1), RUN_HASH)
    path = file_of(seeds, 1)
    path.write_bytes((path.read_bytes() + b"x")[:length])
    assert seeds.find(charge(1)) is None


@pytest.mark.parametrize("at", [0, 31, 32, 63, 64, 95])
def test_a_seed_with_another_byte_counts_as_absent(seeds: Seeds, at: int) -> None:
    seeds.make(charge(1), RUN_HASH)
    text = bytearray(file_of(seeds, 1).read_bytes())
    text[at] ^= 1
    file_of(seeds, 1).write_bytes(text)
    assert seeds.find(charge(1)) is None


def test_a_seed_under_another_name_counts_as_absent(seeds: Seeds) -> None:
    seeds.make(charge(1), RUN_HASH)
    seeds.make(charge(2), RUN_HASH)
    file_of(seeds, 2).write_bytes(file_of(seeds, 1).read_bytes())
    assert seeds.find(charge(2)) is None


def test_an_erased_seed_is_overwritten_where_it_lay(seeds: Seeds) -> None:
    made = seeds.make(charge(1), RUN_HASH)
    with file_of(seeds, 1).open("rb") as held:  # the bytes themselves, whatever becomes of the name
        seeds.erase(charge(1))
        assert held.read() == bytes(96)
    assert list(seeds.folder.iterdir()) == []
    assert seeds.find(charge(1)) is None
    seeds.erase(charge(1))
    assert made.secret != bytes(32)


def test_a_sweep_erases_what_has_a_release_and_what_is_old(seeds: Seeds) -> None:
    for number in (1, 2, 3):
        seeds.make(charge(number), RUN_HASH)
    other = Seeds(seeds.folder, "e" * 32)
    other.make(charge(1), RUN_HASH)
    long_ago = time.time() - OLDEST - 60
    os.utime(file_of(seeds, 3), (long_ago, long_ago))
    (seeds.folder / ".unfinished").write_bytes(bytes(96))
    os.utime(seeds.folder / ".unfinished", (long_ago, long_ago))
    seeds.sweep(lambda number: number == 1)
    assert [seeds.find(charge(number)) is None for number in (1, 2, 3)] == [True, False, True]
    assert other.find(charge(1)) is not None
    assert len(list(seeds.folder.iterdir())) == 2


def test_a_long_life_sweeps_old_seeds_too(seeds: Seeds) -> None:
    seeds.make(charge(1), RUN_HASH)
    long_ago = time.time() - OLDEST - 60
    os.utime(file_of(seeds, 1), (long_ago, long_ago))
    seeds._looked = float("-inf")
    seeds.make(charge(2), RUN_HASH)
    assert seeds.find(charge(1)) is None


@pytest.mark.parametrize("mode", [0o701, 0o710, 0o740, 0o702, 0o777])
def test_a_folder_that_others_can_use_is_refused(tmp_path: Path, mode: int) -> None:
    (tmp_path / "seeds").mkdir()
    (tmp_path / "seeds").chmod(mode)
    with pytest.raises(LedgerError, match=r"HB326.*accessible to others"):
        Seeds(tmp_path / "seeds", LEDGER)


def test_a_folder_that_is_a_link_a_file_or_another_s_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "file").touch()
    for name in ("link", "file"):
        with pytest.raises(LedgerError, match="HB326"):
            Seeds(tmp_path / name, LEDGER)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(LedgerError, match=r"HB326.*another user"):
        Seeds(tmp_path / "real", LEDGER)


def test_a_folder_that_is_opened_to_others_later_is_not_used(seeds: Seeds) -> None:
    seeds.make(charge(1), RUN_HASH)
    seeds.folder.chmod(0o755)
    assert seeds.find(charge(1)) is None
    seeds.make(charge(2), RUN_HASH)
    assert len(list(seeds.folder.iterdir())) == 1


def test_a_planted_link_is_not_followed(seeds: Seeds, tmp_path: Path) -> None:
    made = seeds.make(charge(1), RUN_HASH)
    path = file_of(seeds, 1)
    path.rename(tmp_path / "moved")
    path.symlink_to(tmp_path / "moved")
    assert seeds.find(charge(1)) is None
    seeds.erase(charge(1))
    assert made.secret in (tmp_path / "moved").read_bytes()


def test_seeds_lie_in_memory_where_there_is_a_place_and_beside_the_ledger_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mounts"
    for name in ("run", "user", "disk dir"):
        (tmp_path / name).mkdir()
    disk = str(tmp_path / "disk dir").replace(" ", "\\040")
    mounts.write_text(
        f"x / ext4 rw 0 0\nx {tmp_path}/run tmpfs rw 0 0\nx {tmp_path}/user tmpfs rw 0 0\nx {disk} xfs rw 0 0\n"
    )
    monkeypatch.delenv("RUNTIME_DIRECTORY", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "user"))
    assert seed_folder(tmp_path / "mine", tmp_path, mounts) == tmp_path / "mine"
    assert seed_folder(None, tmp_path, mounts) == tmp_path / "user" / "hubbub"
    monkeypatch.setenv("RUNTIME_DIRECTORY", f"{tmp_path}/run:{tmp_path}/user")
    assert seed_folder(None, tmp_path, mounts) == tmp_path / "run" / "seeds"
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path / "disk dir"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "gone"))
    assert seed_folder(None, tmp_path, mounts) == tmp_path / "seeds"  # /dev/shm is on a disk, by this list
    assert seed_folder(None, tmp_path, tmp_path / "no such list") == tmp_path / "seeds"
    shm = tmp_path / "shm"
    shm.write_text("x / ext4 rw 0 0\nx /dev/shm tmpfs rw 0 0\n")
    assert seed_folder(None, tmp_path, shm) == Path(f"/dev/shm/hubbub-{os.geteuid()}")
