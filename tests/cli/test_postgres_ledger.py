"""A ledger in PostgreSQL, by hubbub.yaml alone: the same commands, and errors that never show a password."""

import json
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from psycopg.conninfo import conninfo_to_dict
from tests.fixtures.postgres_server import Server

import hubbub
from hubbub.cli import main
from hubbub.errors import ConfigError, HubbubError, LedgerError

Run = Callable[..., tuple[int, str, str]]
Write = Callable[..., None]

PASSWORD = "CANARY-7431"
COUNT = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
YAML = """
version: 1
datasets:
  visits:
    source: visits.csv
    unit: {column: patient, groups: 2, rows: 3}
    columns: {patient: {}, region: {values: [North, South]}}
    budget: {epsilon: 3}
analysts:
  ana: {visits: {epsilon: 3}}
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a hubbub.yaml whose ledger is in that database."""
    rows = "".join(f"p{i % 80},{('North', 'South')[i % 2]}\n" for i in range(400))
    (tmp_path / "visits.csv").write_text(f"patient,region\n{rows}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def writer(database: str, anchor: str = "anchor: outside/ledger.anchor") -> None:
        (tmp_path / "hubbub.yaml").write_text(f"{YAML}ledger: {{database: {database!r}, {anchor}}}\n")

    (tmp_path / "outside").mkdir()
    return writer


@pytest.fixture
def uri(postgres_dsn: str) -> str:
    """The address of a new empty database, as an owner writes it."""
    parts = conninfo_to_dict(postgres_dsn)
    return f"postgresql://{parts['user']}@/{parts['dbname']}?host={quote(str(parts['host']), safe='')}"


@pytest.fixture
def run(write: Write, capsys: pytest.CaptureFixture[str]) -> Run:
    def runner(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        out, err = capsys.readouterr()
        assert "CANARY" not in out + err
        assert "Traceback" not in err
        return code, out, err

    return runner


def test_every_command_of_a_ledger_works_in_postgresql(run: Run, write: Write, uri: str, tmp_path: Path) -> None:
    write(uri)
    code, out, _ = run("query", COUNT, "-e", "1", "--json", "--receipt", "r.json")
    assert code == 0
    first = json.loads(out)
    again = json.loads(run("query", COUNT, "-e", "1", "--json")[1])
    assert again["columns"] == first["columns"]
    assert run("verify", "r.json")[0] == 0
    assert json.loads(run("budget", "--json")[1])[0]["caps"][0]["spent"] == "1"
    code, out, _ = run("verify", "ledger")
    assert code == 0
    assert "1 charge, 0 of them without a release" in out
    assert [line["kind"] for line in json.loads(run("audit", "ledger", "--json")[1])] == ["policy", "charge", "release"]
    code, _, err = run("query", COUNT, "-e", "2.5", "--fresh")
    assert code == 1
    assert err.startswith("HB201")
    assert (tmp_path / "outside" / "ledger.anchor").exists()
    assert not (tmp_path / "hubbub-ledger" / "ledger.db").exists()


def test_two_sessions_share_one_ledger_in_postgresql(write: Write, uri: str) -> None:
    write(uri)
    with hubbub.open("hubbub.yaml") as one, hubbub.open("hubbub.yaml") as other:
        paid = one.query(COUNT, epsilon=1)
        assert other.query(COUNT, epsilon=1).replayed
        assert paid.left == 2
        assert other.query(COUNT, epsilon=1, key="anew").left == 1
        with pytest.raises(hubbub.BudgetError):
            one.query(COUNT, epsilon=2, key="too much")


def test_an_older_database_is_refused_until_it_is_forfeited(
    run: Run, write: Write, uri: str, postgres_server: Server
) -> None:
    write(uri)
    run("query", COUNT, "-e", "1")
    name = conninfo_to_dict(uri)["dbname"]
    postgres_server.run(f"CREATE DATABASE backup_of_{name} TEMPLATE {name}")
    run("query", COUNT, "-e", "1", "--fresh")
    postgres_server.run(f"DROP DATABASE {name} WITH (FORCE)")
    postgres_server.run(f"ALTER DATABASE backup_of_{name} RENAME TO {name}")
    code, _, err = run("query", COUNT, "-e", "0.1")
    assert code == 1
    assert "older copy" in " ".join(err.split())
    assert run("verify", "ledger")[0] == 1
    forfeit = ("admin", "forfeit", "--by", "ana", "--reason", "backup", "--epsilon", "1")
    assert run(*forfeit)[0] == 1
    assert run(*forfeit, "--yes")[0] == 0
    assert run("verify", "ledger")[0] == 0
    assert json.loads(run("budget", "--json")[1])[0]["caps"][0]["spent"] == "2"


def test_a_ledger_in_postgresql_needs_an_anchor_outside_it(run: Run, write: Write, uri: str) -> None:
    write(uri, anchor="")
    code, _, err = run("query", COUNT, "-e", "1")
    assert code == 1
    assert err.startswith("HB402")
    assert "ledger.anchor is required" in err
    with pytest.raises(ConfigError):
        hubbub.open("hubbub.yaml")


@pytest.fixture
def locked(postgres_server: Server) -> Iterator[str]:
    """A user whom the server asks for a password; the address has a wrong one."""
    rules = postgres_server.home / "data" / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text(f"local all locked scram-sha-256\n{before}")
    postgres_server.run("CREATE ROLE locked LOGIN PASSWORD 'right'")
    postgres_server.run("SELECT pg_reload_conf()")
    yield f"postgresql://locked:{PASSWORD}@/postgres?host={quote(str(postgres_server.home), safe='')}"
    rules.write_text(before)
    postgres_server.run("SELECT pg_reload_conf()")
    postgres_server.run("DROP ROLE locked")


def refused(run: Run, says: str) -> None:
    """Each way in says what is wrong, without the password: commands, and whatever a program would print or log."""
    for command in (("query", COUNT, "-e", "1"), ("budget",), ("verify", "ledger"), ("audit", "ledger")):
        code, _, err = run(*command)
        assert code == 1
        assert err.startswith("HB302"), command
        assert says in " ".join(err.split())
    assert run("check")[0] == 0
    with pytest.raises(HubbubError) as failed:
        hubbub.open("hubbub.yaml")
    assert isinstance(failed.value, LedgerError)
    assert "CANARY" not in "".join(traceback.format_exception(failed.value))


def test_a_wrong_password_is_refused_without_showing_it(run: Run, write: Write, locked: str) -> None:
    write(locked)
    refused(run, "password")


def test_a_server_that_does_not_answer_is_named_without_the_password(run: Run, write: Write) -> None:
    write(f"postgresql://hubbub:{PASSWORD}@127.0.0.1:1/ledger")
    refused(run, "127.0.0.1")


@pytest.mark.parametrize("rest", ["%zz@host/ledger", " x@host/ledger", "@[host/ledger"])
def test_an_address_that_is_none_is_refused_without_showing_it(run: Run, write: Write, rest: str) -> None:
    write(f"postgresql://hubbub:{PASSWORD}{rest}")
    refused(run, "not a PostgreSQL address")


def test_without_psycopg_the_extra_is_named(write: Write, uri: str) -> None:
    write(uri)
    # None in its place makes every import of it fail, as if it were not installed
    program = f"import sys; sys.modules['psycopg'] = None; from hubbub.cli import main; sys.exit(main({['budget']}))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert found.stderr.startswith("HB321")
    assert "pip install 'hubbub[postgres]'" in found.stderr
    assert "Traceback" not in found.stderr
