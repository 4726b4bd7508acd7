"""The bill of materials names all that is locked, and the audit finds what is known, or says that it could not look."""

import importlib.util
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "requirements" / "run.lock"


@pytest.fixture(scope="module")
def check() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release_check", ROOT / "packaging" / "release_check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out" / "hubbub.cdx.json"


def advisory(name: str, **affected: Any) -> dict[str, Any]:
    return {"id": "TEST-1", "affected": [{"package": {"ecosystem": "PyPI", "name": name}, **affected}]}


def run(check: ModuleType, out: Path, advisories: object, tmp_path: Path) -> int:
    (tmp_path / "advisories.json").write_text(json.dumps(advisories))
    status: int = check.main(["--out", str(out), "--advisories", str(tmp_path / "advisories.json")])
    return status


def test_the_bill_names_every_locked_version_with_all_its_hashes(check: ModuleType, out: Path, tmp_path: Path) -> None:
    assert run(check, out, [advisory("nothing", versions=["1"])], tmp_path) == 0
    bill, text = json.loads(out.read_text()), LOCK.read_text()
    pins = re.findall(r"(?m)^([\w.-]+)(?:\[.*?\])?==([^ ;\\]+)", text)
    assert sorted((part["name"], part["version"]) for part in bill["components"]) == sorted(pins)
    hashes = [each["value"] for part in bill["components"] for each in part["properties"] if "sha256" in each["name"]]
    assert sorted(hashes) == sorted(re.findall(r"sha256:([0-9a-f]{64})", text))
    references = {part["bom-ref"] for part in bill["components"]} | {bill["metadata"]["component"]["bom-ref"]}
    assert {each["ref"] for each in bill["dependencies"]} == references
    assert {ref for each in bill["dependencies"] for ref in each["dependsOn"]} <= references
    graph = {each["ref"].partition("@")[0]: each["dependsOn"] for each in bill["dependencies"]}
    assert any(ref.startswith("pkg:pypi/starlette@") for ref in graph["pkg:pypi/fastapi"])
    assert any(ref.startswith("pkg:pypi/duckdb@") for ref in graph["pkg:pypi/hubbub"])
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    assert sum("licenses" in part for part in bill["components"]) > 20
    before = out.read_bytes()
    run(check, out, [advisory("nothing", versions=["1"])], tmp_path)
    assert out.read_bytes() == before, "the same lock gives the same bytes"


@pytest.mark.parametrize(
    ("affected", "status"),
    [
        ({"ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "9999"}]}]}, 1),
        ({"ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}]}]}, 1),
        ({"ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "0.0.1"}]}]}, 0),
        ({"ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"last_affected": "0.0.1"}]}]}, 0),
        ({"ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "one"}]}]}, 1),
        ({"versions": ["0.0.1"]}, 0),
    ],
)
def test_an_advisory_concerns_the_versions_that_it_says(
    check: ModuleType, out: Path, tmp_path: Path, affected: dict[str, Any], status: int
) -> None:
    assert run(check, out, [advisory("FastAPI", **affected)], tmp_path) == status
    assert run(check, out, [advisory("FastAPI", **affected) | {"withdrawn": "2026-01-01"}], tmp_path) == 0
    assert run(check, out, [advisory("fast", **affected)], tmp_path) == 0


def test_advisories_that_cannot_be_read_are_no_pass(
    check: ModuleType, out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(check, out, [], tmp_path) == 2
    assert check.main(["--out", str(out), "--advisories", str(tmp_path / "none.json")]) == 2
    assert "COULD NOT LOOK" in capsys.readouterr().err


class _Index(BaseHTTPRequestHandler):
    status, entries = 200, "[]"

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.end_headers()
        name = self.path.split("/")[2]
        known = self.entries if name == "fastapi" else "[]"
        self.wfile.write(f'{{"vulnerabilities": {known}}}'.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[_Index]]:
    """A package index on this machine."""
    with HTTPServer(("127.0.0.1", 0), _Index) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
        yield _Index
        server.shutdown()
        thread.join()


def test_the_index_is_asked_where_no_advisories_are_given(
    check: ModuleType,
    out: Path,
    index: type[_Index],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert check.main(["--out", str(out)]) == 0
    monkeypatch.setattr(index, "entries", '[{"id": "TEST-2", "fixed_in": ["9999"], "withdrawn": null}]')
    assert check.main(["--out", str(out)]) == 1
    assert "TEST-2" in capsys.readouterr().err
    monkeypatch.setattr(index, "status", 404)
    assert check.main(["--out", str(out)]) == 2
    assert "COULD NOT LOOK" in capsys.readouterr().err
