"""A thief of an owner's token changes hubbub.yaml: no file of the machine becomes data, or shows that it is there."""

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from hubbub.server.remote_edit_rules import violations

EXTRA = "  stolen: {{source: '{source}', unit: row, columns: {{}}, budget: {{epsilon: 1000}}}}\n  plans:"


def owner(app: Any, text: str) -> tuple[list[dict[str, Any]], int, str]:
    """Check a text, then apply it; give the problems of the check, and status and code of the apply."""
    client = app.client("owner")
    problems = client.post("/api/v1/config/check", json={"text": text}).json()["problems"]
    digest = client.get("/api/v1/config").json()["hash"]
    answer = client.put("/api/v1/config", json={"text": text}, headers={"If-Match": digest})
    return problems, answer.status_code, answer.json().get("code", "")


def with_source(app: Any, source: str) -> str:
    text: str = app.client("owner").get("/api/v1/config").json()["text"]
    return text.replace("  plans:", EXTRA.format(source=source), 1)


@pytest.fixture
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file that is nobody's business."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "salaries.csv").write_text("employee,salary\nmallory,1\n")
    return folder


def test_a_file_elsewhere_does_not_become_data(app: Any, outside: Path) -> None:
    (app.folder / "link.csv").symlink_to(outside / "salaries.csv")
    (app.folder / "door").symlink_to(outside)
    told = set()
    for source in (
        str(outside / "salaries.csv"),
        f"csv:{outside}/salaries.csv",
        f"../{outside.name}/salaries.csv",
        "link.csv",
        "door/salaries.csv",
        f"{outside}/gone.csv",
        f"csv:{outside}",
        "csv:/etc/passwd",
        "csv:/proc/self/environ",
    ):
        problems, status, code = owner(app, with_source(app, source))
        assert ([each["code"] for each in problems], status, code) == (["HB432"], 422, "HB432"), source
        told.add(problems[0]["detail"])
    assert len(told) == 1  # one that is there and one that is not sound alike


def test_ledger_tokens_and_secrets_do_not_become_data(app: Any) -> None:
    for source in (
        "sqlite:hubbub-ledger/ledger.db#entries",
        "sqlite:hubbub-ledger/server.db#tokens",
        "csv:hubbub-ledger/server.key",
        "sqlite:./hubbub-ledger/../hubbub-ledger/server.db#tokens",
        "csv:hubbub-ledger/versions.json",
    ):
        problems, status, code = owner(app, with_source(app, source))
        assert ([each["code"] for each in problems], status, code) == (["HB432"], 422, "HB432"), source


def test_a_ledger_beside_hubbub_yaml_does_not_become_data(tmp_path: Path) -> None:
    now = "ledger: {database: my.db, anchor: far.anchor}\nserver: {secret_file: key.txt, tls: {key: tls.pem}}\n"
    for name in ("my.db", "my.db-wal", "server.db", "server.key", "far.anchor", "key.txt", "tls.pem"):
        then = f"{now}datasets: {{a: {{source: 'csv:{name}'}}}}\n"
        assert [each.code for each in violations(now, then, tmp_path)] == ["HB432"], name
    assert violations(now, f"{now}datasets: {{a: {{source: other.csv}}}}\n", tmp_path) == []


def test_a_file_of_the_folder_may_be_added(app: Any) -> None:
    (app.folder / "more.csv").write_text("ward\na\n")
    text = with_source(app, "more.csv").replace("unit: row, columns: {}", "unit: row, columns: {ward: {values: [a]}}")
    problems, status, _ = owner(app, text)
    assert (problems, status) == ([], 200)


def test_a_source_that_stands_in_the_file_may_stay_wherever_it_is(
    start_app: Any, tmp_path: Path, outside: Path
) -> None:
    app = start_app()
    path = outside / "clinic.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE stays (ward TEXT)")
        database.execute("CREATE TABLE salaries (pay INTEGER)")
    database.close()
    file = tmp_path / "hubbub.yaml"
    text = with_source(app, f"sqlite:{path}#stays").replace("columns: {}", "columns: {ward: {values: [a]}}")
    file.write_text(text)  # on the machine itself
    os.utime(file, (1, 1))
    app.service.current.reload()
    assert "stolen" in app.client("owner").get("/api/v1/datasets").json()["datasets"]
    problems, status, _ = owner(app, text.replace("epsilon: 1000", "epsilon: 3"))
    assert (problems, status) == ([], 200)
    problems, status, code = owner(app, text.replace("#stays", "#salaries"))  # another table of the same file
    assert ([each["code"] for each in problems], status, code) == (["HB432"], 422, "HB432")


@pytest.mark.parametrize(
    "part",
    [
        "server: {oidc: {issuer: 'https://thief.example', audience: hubbub, owners: [thief]}}",
        "server: {secret_file: /etc/passwd}",
        "server: {host: 0.0.0.0, behind_proxy: true, proxies: [0.0.0.0/0]}",
        "server: {quantum: 0}",
        "ledger: {database: fresh.db}",
        "ledger: {anchor: elsewhere}",
    ],
)
def test_how_the_server_is_reached_and_its_ledger_are_changed_on_the_machine_alone(app: Any, part: str) -> None:
    text = app.client("owner").get("/api/v1/config").json()["text"]
    problems, status, code = owner(app, f"{text}{part}\n")
    assert ([each["code"] for each in problems], status, code) == (["HB432"], 422, "HB432")
