"""What the files for running a server promise: no root, nothing writable, no secret in the open, nothing unpinned."""

import configparser
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from hubbub.server.attack_lab import MAX_RUNNING, MEMORY
from hubbub.server.settings import OTHER_VARIABLES, VARIABLES

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "packaging" / "hubbub.service"


@pytest.fixture(scope="module")
def steps() -> list[tuple[str, str]]:
    """The Dockerfile's instructions, comments left out and long lines joined."""
    text = re.sub(r"(?m)^\s*#.*\n", "", (ROOT / "Dockerfile").read_text()).replace("\\\n", "")
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1].strip()) for line in text.splitlines() if line.strip()]


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    return found


@pytest.fixture(scope="module")
def unit() -> dict[str, str]:
    """The service section; where a key stands several times, its values one after the other."""
    lines = UNIT.read_text().split("[Service]")[1].split("[Install]")[0].splitlines()
    found: dict[str, str] = {}
    for line in lines:
        if line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found[key] = f"{found.get(key, '')} {value}".strip()
    return found


def test_the_image_ends_as_a_user_who_is_not_root(steps: list[tuple[str, str]]) -> None:
    last_stage = steps[max(place for place, (word, _) in enumerate(steps) if word == "FROM") :]
    users = [rest for word, rest in last_stage if word == "USER"]
    assert users == ["10001:10001"]
    after = last_stage[last_stage.index(("USER", users[0])) + 1 :]
    assert not [word for word, _ in after if word in ("RUN", "COPY", "ADD")], "nothing is changed afterwards"


def test_the_image_installs_only_what_is_pinned_by_hash(steps: list[tuple[str, str]]) -> None:
    installs = [part for word, rest in steps if word == "RUN" for part in rest.split("&&") if "pip install" in part]
    assert len(installs) == 2
    assert "--require-hashes" in installs[0]
    assert "-r requirements/run.lock" in installs[0]
    assert "--no-deps" in installs[1]
    assert "--no-index" in installs[1]
    pins = re.findall(r"(?m)^([\w.-]+)==", (ROOT / "requirements" / "run.lock").read_text())
    assert {"fastapi", "uvicorn", "psycopg", "psycopg-binary", "duckdb"} <= set(pins)


def test_what_the_image_copies_is_not_ignored_and_nothing_else_is_sent(steps: list[tuple[str, str]]) -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in lines
    sent = {line[1:] for line in lines if line.startswith("!")}
    copied = {path for word, rest in steps if word == "COPY" and "--from" not in rest for path in rest.split()[:-1]}
    assert copied == sent
    assert all((ROOT / path).exists() for path in sent)


def test_the_image_says_whether_it_is_healthy_and_stops_in_good_order(steps: list[tuple[str, str]]) -> None:
    words = dict(steps)
    assert "/opt/hubbub/health.py" in words["HEALTHCHECK"]
    assert words["STOPSIGNAL"] == "SIGTERM"
    assert words["ENTRYPOINT"] == '["hubbub"]'


@pytest.mark.parametrize("name", ["hubbub", "db"])
def test_a_service_has_a_read_only_root_and_no_privileges(services: dict[str, dict[str, Any]], name: str) -> None:
    service = services[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not service["user"].startswith("0")
    assert any(each.startswith("/tmp:") for each in service["tmpfs"])


def test_no_secret_stands_in_the_environment(services: dict[str, dict[str, Any]]) -> None:
    for service in services.values():
        for name, value in service["environment"].items():
            if re.search("SECRET|PASS|TOKEN|KEY", name):
                assert name.endswith("FILE"), name
                assert value.startswith("/run/secrets/")
                assert value.removeprefix("/run/secrets/") in service["secrets"]


def test_the_anchor_is_on_another_volume_than_the_ledger(services: dict[str, dict[str, Any]]) -> None:
    ours, theirs = (
        {each.rsplit(":", 1)[0] if each.endswith(":ro") else each for each in services[n]["volumes"]}
        for n in ("hubbub", "db")
    )
    anchors = [each for each in ours if "/var/lib/hubbub-anchor" in each]
    assert len(anchors) == 1
    assert not ours & theirs
    assert [each for each in services["hubbub"]["volumes"] if each.endswith(":/data:ro")], "data is read-only"


def test_the_database_is_reached_by_the_server_alone(services: dict[str, dict[str, Any]]) -> None:
    document = yaml.safe_load((ROOT / "compose.yaml").read_text())
    assert "ports" not in services["db"]
    assert services["db"]["networks"] == ["ledger"]
    assert document["networks"]["ledger"] == {"internal": True}
    assert all(port.startswith("127.0.0.1:") for port in services["hubbub"]["ports"])


def test_the_unit_gives_the_process_nothing_that_it_does_not_need(unit: dict[str, str]) -> None:
    yes = (
        "ProtectHome PrivateTmp PrivateDevices PrivateUsers NoNewPrivileges MemoryDenyWriteExecute LockPersonality "
        "ProtectClock ProtectHostname ProtectKernelLogs ProtectKernelModules ProtectKernelTunables "
        "ProtectControlGroups RestrictNamespaces RestrictRealtime RestrictSUIDSGID"
    )
    assert {name: unit.get(name) for name in yes.split()} == dict.fromkeys(yes.split(), "yes")
    assert unit["ProtectSystem"] == "strict"
    assert unit["CapabilityBoundingSet"] == ""
    assert unit["User"] == "hubbub"
    assert unit["LimitCORE"] == "0"
    assert unit["UMask"] == "0077"


def test_the_unit_is_in_the_form_that_systemd_reads() -> None:
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[method-assign, assignment]
    parser.read_string(UNIT.read_text())
    assert parser.sections() == ["Unit", "Service", "Install"]


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The unit, with a program that exists."""
    unit = tmp_path / "hubbub.service"
    unit.write_text(UNIT.read_text().replace("/opt/hubbub/bin/hubbub", "/bin/true"))
    return unit


def analyzed(*words: str) -> tuple[int, str]:
    """Run systemd-analyze."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed; `make test` installs it")
    done = subprocess.run(["systemd-analyze", *words], capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout + done.stderr


def test_systemd_accepts_every_line_of_the_unit(installed: Path) -> None:
    assert analyzed("verify", str(installed)) == (0, "")
    installed.write_text(installed.read_text().replace("ProtectHome=", "ProtectHomes="))
    assert "ProtectHomes" in analyzed("verify", str(installed))[1], "a planted slip is found"


def test_the_exposure_of_the_unit_is_the_one_in_the_documents(installed: Path) -> None:
    """Versions of systemd differ a little in what they count, so the documents give the score of one of them."""
    code, text = analyzed("security", "--offline=true", "--threshold=15", str(installed))
    assert code == 0, text[-300:]
    score = re.search(r"Overall exposure level for \S+: (\d\.\d)", text)
    documented = re.search(r"exposure level of (\d\.\d)", (ROOT / "docs" / "deploy.md").read_text())
    assert score is not None
    assert documented is not None
    assert abs(float(score[1]) - float(documented[1])) <= 0.3
    installed.write_text(installed.read_text().replace("NoNewPrivileges=yes", "").replace("PrivateDevices=yes", ""))
    weaker = re.search(
        r"Overall exposure level for \S+: (\d\.\d)", analyzed("security", "--offline=true", str(installed))[1]
    )
    assert weaker is not None
    assert float(weaker[1]) > float(score[1]), "the score notices what is taken away"


def test_every_variable_in_these_files_is_one_that_the_server_reads() -> None:
    files = (UNIT, ROOT / "compose.yaml", ROOT / "Dockerfile", ROOT / "packaging" / "health.py")
    used = {name for file in files for name in re.findall(r"HUBBUB_[A-Z_]+", file.read_text())}
    assert used <= set(VARIABLES) | OTHER_VARIABLES


def test_every_variable_is_documented() -> None:
    text = (ROOT / "docs" / "deploy.md").read_text()
    named = set(re.findall(r"HUBBUB_[A-Z_]+", text))
    missing = {name for name in VARIABLES if name not in named and not name.startswith("HUBBUB_OIDC_")}
    assert missing == set()
    assert named - {"HUBBUB_OIDC_"} <= set(VARIABLES) | OTHER_VARIABLES


class _Health(BaseHTTPRequestHandler):
    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status if self.path == "/healthz" else 404)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    """The port of something that answers /healthz."""
    with HTTPServer(("127.0.0.1", 0), _Health) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def _health(port: int) -> int:
    script = ROOT / "packaging" / "health.py"
    return subprocess.run([sys.executable, script], env={"HUBBUB_PORT": str(port)}, check=False).returncode


def test_the_health_check_tells_a_server_that_answers_from_one_that_does_not(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _health(port) == 0
    monkeypatch.setattr(_Health, "status", 503)
    assert _health(port) == 1
    assert _health(1) == 1


def test_the_studies_of_the_attack_lab_fit_into_the_unit(
    unit: dict[str, str], services: dict[str, dict[str, Any]]
) -> None:
    """All that run at once, with 4 GiB for the server; and one that is ended for its memory takes nobody with it."""
    needed = MAX_RUNNING * MEMORY + (4 << 30)
    assert int(unit["MemoryMax"].removesuffix("G")) << 30 >= needed
    assert unit["OOMPolicy"] == "continue"
    limits = [service["mem_limit"] for service in services.values() if "mem_limit" in service]
    assert limits
    assert all(int(limit.removesuffix("g")) << 30 >= needed for limit in limits)
