"""The light wheel asks a real server with httpx2 alone: no engine, parser, ledger or array library is there."""

import json
import os
import subprocess
import sys
import zipfile
from email.parser import Parser
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from tests.server.conftest import World

ROOT = Path(__file__).parents[2]

#: What an analyst does with the wheel, in a process that has it and httpx2.
SCRIPT = """
import importlib.util, json, sys
sys.path[:0] = [sys.argv[1]]
absent = ("numpy", "duckdb", "sqlglot", "yaml", "cryptography", "rich", "fastapi", "hubbub.sql", "hubbub.curator")
import hubbub, hubbub.dbapi
found = {"present": [name for name in absent if importlib.util.find_spec(name)], "file": hubbub.__file__}
with hubbub.connect(sys.argv[2], sys.argv[3]) as session:
    found["datasets"] = session.datasets()
    release = session.query("SELECT coinsurance, COUNT(*) AS n FROM health GROUP BY coinsurance", epsilon="0.5")
    found["columns"], found["html"] = release.columns, release._repr_html_()
    try:
        session.query("SELECT * FROM health", epsilon=1)
    except hubbub.QueryError as error:
        found["refusal"] = error.code
    try:
        release.to_pandas()
    except hubbub.ParameterError as error:
        found["pandas"] = error.code
try:
    hubbub.open()
except hubbub.ParameterError as error:
    found["open"] = error.code
try:
    hubbub.dbapi.connect(path="hubbub.yaml")
except hubbub.dbapi.ProgrammingError as error:
    found["path"] = error.code
with hubbub.dbapi.connect(sys.argv[2], sys.argv[3], epsilon="0.5") as connection:
    cursor = connection.cursor()
    found["rows"] = len(cursor.execute("SELECT coinsurance, COUNT(*) AS n FROM health GROUP BY coinsurance").fetchall())
print(json.dumps(found))
"""


def closure(name: str, found: set[str]) -> set[str]:
    """Collect a distribution and all that it needs here."""
    if name not in found:
        found.add(name)
        for text in distribution(name).requires or ():
            need = Requirement(text)
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                closure(need.name, found)
    return found


@pytest.fixture
def wheel(tmp_path: Path) -> zipfile.ZipFile:
    """Build the wheel from the sources, offline."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--disable-pip-version-check",
        "-w",
        str(tmp_path / "dist"),
        str(ROOT / "packaging" / "client"),
    ]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PIP_NO_INPUT": "1"})
    (path,) = (tmp_path / "dist").glob("*.whl")
    return zipfile.ZipFile(path)


def test_the_light_wheel_asks_a_server_with_httpx_alone(wheel: zipfile.ZipFile, world: World, tmp_path: Path) -> None:
    with wheel:
        names = wheel.namelist()
        about = next(name for name in names if name.endswith("METADATA"))
        told = Parser().parsestr(wheel.read(about).decode())
        wheel.extractall(tmp_path / "site")
    plain = [text for text in told.get_all("Requires-Dist", []) if "extra ==" not in text]
    assert [Requirement(text).name for text in plain] == ["httpx2"]
    rooms = {name.split("/")[1] for name in names if name.startswith("hubbub/")}
    assert rooms == {
        "__init__.py",
        "errors.py",
        "py.typed",
        "LICENSE",
        "core",
        "answers",
        "client",
        "dbapi.py",
        "frames.py",
    }
    assert not [name for name in names if name.endswith(".pyc")]
    for need in closure("httpx2", set()):
        for file in distribution(need).files or ():
            top = file.parts[0]
            if not (tmp_path / "site" / top).exists() and top not in ("..", "__pycache__"):
                (tmp_path / "site" / top).symlink_to(Path(str(distribution(need).locate_file(top))))
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", SCRIPT, str(tmp_path / "site"), world.url, world.tokens["ana"]],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["present"] == []
    assert found["file"].startswith(str(tmp_path))
    assert found["datasets"] == ["health", "plans"]
    assert found["columns"] == ["coinsurance", "n"]
    assert "<svg" in found["html"]
    assert found["path"] == "HB184"
    assert (found["refusal"][:3], found["pandas"], found["open"], found["rows"]) == ("HB5", "HB130", "HB184", 5)
