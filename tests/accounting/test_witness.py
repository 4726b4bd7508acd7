"""A witness: a restored copy of ledger and anchor together is refused, whoever copied what."""

import os
import shutil
from pathlib import Path

import pytest

from hubbub.accounting.chain import Mark
from hubbub.accounting.witness import (
    LogWitness,
    PostgresWitness,
    Witness,
    WitnessedAnchor,
    WitnessedMark,
    newest,
    open_witness,
)
from hubbub.cli import main
from hubbub.curator.session import open_session
from hubbub.errors import ConfigError, LedgerError

YAML = """
version: 1
datasets:
  visits: {{source: visits.csv, unit: row, columns: {{site: {{values: [a, b]}}}}, budget: {{epsilon: 3}}}}
analysts: {{ana: {{visits: {{epsilon: 3}}}}}}
ledger: {{anchor: {anchor}, witness: "{witness}"}}
"""
SQL = "SELECT COUNT(*) AS n FROM visits"


def mark(sequence: int, ledger: str = "a" * 32) -> Mark:
    return Mark(ledger, sequence, bytes([sequence % 256]) * 32)


@pytest.fixture(params=["file", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        from psycopg import conninfo

        known = conninfo.conninfo_to_dict(request.getfixturevalue("postgres_dsn"))
        return f"postgresql:///{known['dbname']}?host={known['host']}&user={known['user']}"
    return f"file:{tmp_path / 'elsewhere.log'}"


@pytest.fixture
def home(tmp_path: Path, place: str) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "visits.csv").write_text("site\n" + "a\nb\n" * 50)
    (folder / "hubbub.yaml").write_text(YAML.format(anchor="own/ledger.anchor", witness=place))
    return folder


def spend(home: Path, epsilon: str) -> None:
    with open_session(home / "hubbub.yaml") as h:
        h.query(SQL, epsilon=epsilon)


def test_a_copy_of_ledger_and_anchor_is_refused(
    home: Path, place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spend(home, "0.5")
    shutil.copytree(home, tmp_path / "copy")
    spend(home, "0.25")
    shutil.rmtree(home)
    (tmp_path / "copy").rename(home)
    with pytest.raises(LedgerError, match="HB307") as refusal:
        spend(home, "0.75")
    assert "the database is an older copy" in refusal.value.message
    assert main(["verify", "ledger", "--config", str(home / "hubbub.yaml"), "--against", place]) == 1
    assert "older copy" in " ".join(capsys.readouterr().out.split())
    # planted: without the witness nobody can tell
    (home / "hubbub.yaml").write_text(YAML.format(anchor="own/ledger.anchor", witness="file:new.log"))
    spend(home, "0.75")


@pytest.mark.parametrize("more", [1, 3])
def test_a_copy_that_went_on_without_its_witness_is_refused(tmp_path: Path, home: Path, place: str, more: int) -> None:
    """It has as many entries as the witness was told of, or more, and other ones."""
    spend(home, "0.5")
    shutil.copytree(home, tmp_path / "copy")
    spend(home, "0.25")
    shutil.rmtree(home)
    (tmp_path / "copy").rename(home)
    (home / "hubbub.yaml").write_text(YAML.format(anchor="own/ledger.anchor", witness="file:new.log"))
    for place_of in range(more):
        spend(home, f"0.1{place_of}")
    (home / "hubbub.yaml").write_text(YAML.format(anchor="own/ledger.anchor", witness=place))
    with pytest.raises(LedgerError, match=r"HB307.*does not match"):
        spend(home, "0.2")
    yaml = str(home / "hubbub.yaml")
    assert main(["verify", "ledger", "--config", yaml]) == 1
    assert main(["admin", "forfeit", "--config", yaml, "--by", "olga", "--reason", "test", "--yes"]) == 0
    with open_session(home / "hubbub.yaml") as h:
        assert h.budget()[0].largest == 0


def test_a_ledger_goes_on_with_its_witness(home: Path, place: str) -> None:
    for _ in range(3):
        spend(home, "0.1")
    assert main(["verify", "ledger", "--config", str(home / "hubbub.yaml"), "--against", place]) == 0
    shutil.rmtree(home / "own")  # the anchor is lost: the witness tells that nothing is missing
    spend(home, "0.2")
    yaml = str(home / "hubbub.yaml")
    assert main(["admin", "forfeit", "--config", yaml, "--by", "olga", "--reason", "test", "--yes"]) == 0
    with open_session(home / "hubbub.yaml") as h:
        assert h.budget()[0].largest == 0


def test_another_ledger_is_refused(home: Path) -> None:
    spend(home, "0.5")
    shutil.rmtree(home / "hubbub-ledger", ignore_errors=True)
    for path in home.glob("*.db*"):
        path.unlink()
    shutil.rmtree(home / "own")
    with pytest.raises(LedgerError, match="HB307"):
        spend(home, "0.5")


def test_the_newest_mark_is_read_back_and_torn_lines_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "w.log"
    witness = LogWitness(path)
    assert witness.read() is None
    for sequence in range(0, 5000, 500):
        witness.append(mark(sequence))
    assert witness.read() == mark(4500)
    whole = path.read_bytes()
    for kept in range(len(whole) - 1, len(whole) - 60, -1):
        path.write_bytes(whole[:kept])
        assert witness.read() in (mark(4000), mark(4500))
    path.write_bytes(b"x" * 100)
    with pytest.raises(LedgerError, match="HB336"):
        witness.read()


def test_several_processes_out_of_step_do_not_set_it_back() -> None:
    def found(*marks: tuple[int, str, bool]) -> Mark | None:
        return newest(WitnessedMark(mark(sequence, ledger * 32), reset) for sequence, ledger, reset in marks)

    assert found((3, "a", False), (5, "a", False), (4, "a", False)) == mark(5)
    assert found((5, "a", False), (2, "a", True), (3, "a", False)) == mark(3)
    assert found((9, "a", False), (1, "b", False)) == mark(1, "b" * 32)
    assert found() is None


class Held:
    """A witness that can be taken away."""

    where = "here"

    def __init__(self) -> None:
        self.marks: list[Mark] = []
        self.away = False

    def read(self) -> Mark | None:
        return self.marks[-1] if self.marks else None

    def append(self, mark: Mark, *, reset: bool = False) -> None:  # noqa: ARG002 - the protocol
        if self.away:
            raise LedgerError("HB336", "away", "")
        self.marks.append(mark)


class Plain:
    where = "anchor"

    def __init__(self) -> None:
        self.mark: Mark | None = None

    def read(self) -> Mark | None:
        return self.mark

    def write(self, mark: Mark) -> None:
        self.mark = mark

    reset = write

    def close(self) -> None:
        pass


def test_a_witness_that_comes_back_gets_the_newest_mark() -> None:
    held, plain = Held(), Plain()
    anchor = WitnessedAnchor(plain, held, period=1000)
    anchor.write(mark(1))
    assert held.marks == [mark(1)]
    held.away = True
    anchor.write(mark(2))
    anchor._try_to_send()
    held.away = False
    anchor.write(mark(3))
    anchor.close()
    assert (held.marks, plain.mark) == ([mark(1), mark(3)], mark(3))


def test_a_witness_that_does_not_work_is_noticed_at_the_start() -> None:
    held = Held()
    held.away = True
    with pytest.raises(LedgerError, match="HB336"):
        WitnessedAnchor(Plain(), held).write(mark(1))


@pytest.mark.parametrize("text", ["", "file:", "s3://bucket", "/var/log/x"])
def test_a_place_that_is_not_known_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="HB403"):
        open_witness(text, Path())


def test_a_user_who_may_only_insert_and_select_is_enough(postgres_dsn: str) -> None:
    import psycopg

    PostgresWitness(postgres_dsn).append(mark(1))
    name = f"hubbub_inserter_{os.getpid()}"
    with psycopg.connect(postgres_dsn, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'x'".encode())
        try:
            admin.execute(f"GRANT SELECT, INSERT ON hubbub_witness TO {name}".encode())
            info = psycopg.conninfo.conninfo_to_dict(postgres_dsn)
            theirs = psycopg.conninfo.make_conninfo("", **{**info, "user": name, "password": "x"})
            witness: Witness = PostgresWitness(theirs)
            witness.append(mark(2))
            assert witness.read() == mark(2)
            with psycopg.connect(theirs) as thief, pytest.raises(psycopg.errors.InsufficientPrivilege):
                thief.execute("DELETE FROM hubbub_witness")
        finally:
            admin.execute(f"DROP OWNED BY {name}".encode())
            admin.execute(f"DROP ROLE {name}".encode())


@pytest.mark.parametrize("place", ["file:../elsewhere.log"])
def test_nothing_is_charged_while_the_witness_cannot_be_read(home: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.log").mkdir()
    with pytest.raises(LedgerError, match="HB336"):
        spend(home, "0.5")
