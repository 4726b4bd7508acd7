"""The recipes of CONTRIBUTING.md, each followed to the end with the code that it shows."""

import asyncio
import re
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx2
import numpy as np
import pytest
from tests.mechanisms.test_contract import mechanisms_in
from tests.project import errors

import hubbub
from hubbub import cli
from hubbub.analyses import registry
from hubbub.analyses.registry import Analysis
from hubbub.attacks.catalogue import Attack
from hubbub.audit.receipt import check_receipt
from hubbub.demo import lay_out
from hubbub.engines import registry as engines
from hubbub.errors import ParameterError
from hubbub.mechanisms.enumeration import worst_ratio
from hubbub.noise.source import system
from hubbub.server.app import create_app
from hubbub.server.pages.frame import Frame
from hubbub.server.service import Service
from hubbub.server.settings import Settings
from hubbub.sql import nodes
from hubbub.sql.aggregates import table as aggregates

TEXT = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()
RECIPES = dict(re.findall(r"<!-- recipe: (\w+) -->\n```python\n(.*?)```", TEXT, re.DOTALL))

Follow = Callable[[str, str], ModuleType]


@pytest.fixture
def follow(monkeypatch: pytest.MonkeyPatch) -> Follow:
    """Run the code of a recipe as the module that it would be."""

    def run(recipe: str, name: str) -> ModuleType:
        module = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(RECIPES[recipe], name, "exec"), module.__dict__)
        return module

    return run


def demo(folder: Path, *, unit: str | None = None) -> Path:
    lay_out(folder)
    path = folder / "hubbub.yaml"
    if unit is not None:
        path.write_text(re.sub(r"unit: .*", f"unit: {unit}", path.read_text(), count=1))
    return path


def test_every_recipe_has_its_test_and_no_other() -> None:
    tests = {name.removeprefix("test_recipe_") for name in globals() if name.startswith("test_recipe_")}
    assert tests == set(RECIPES)
    assert len(RECIPES) == TEXT.count("<!-- recipe:") == 8


def test_recipe_mechanism(follow: Follow) -> None:
    module = follow("mechanism", "hubbub.mechanisms.noisy_bit")
    assert mechanisms_in(module) == {module.NoisyBit}
    bit = module.NoisyBit(epsilon=Fraction(1))
    yes, no = (bit.distribution(value) for value in (True, False))
    low, high = worst_ratio(yes, no)
    assert float(low) == pytest.approx(1) == float(high)  # as logarithms: ε
    assert bit.sample(bool(1), system()) in (True, False)


def test_recipe_aggregate(follow: Follow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    people = follow("aggregate", "hubbub.sql.aggregates.people").People()
    monkeypatch.setattr(aggregates, "AGGREGATES", {**aggregates.AGGREGATES, people.name: people})
    monkeypatch.setitem(nodes.AGGREGATE_NAMES, "people", ("people", 1))
    with hubbub.open(demo(tmp_path)) as h:
        release = h.query("SELECT people(age) AS n FROM health", epsilon=1)
    assert (
        abs(int(str(release.rows[0][0])) - 5912) < 100
    )  # Laplace noise of scale 1 is beyond 100 with probability e^-100


def test_recipe_analysis(follow: Follow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    follow("analysis", "hubbub.analyses.programs.row_total")
    monkeypatch.setattr(registry, "ANALYSES", {**registry.ANALYSES, "row_total": Analysis("programs.row_total")})
    with hubbub.open(demo(tmp_path, unit="row")) as h:
        text = "CALL row_total(table => 'health')"
        assert h.estimate(text, epsilon=1).expected[0].plus_minus == 3
        release = h.query(text, epsilon=1)
        assert h.query(text, epsilon=1).replayed
    assert abs(int(str(release.rows[0][0])) - 20190) < 100
    assert check_receipt(release.document()).sound


def test_recipe_engine(follow: Follow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = follow("engine", "hubbub.engines.example").ENTRY
    monkeypatch.setattr(engines, "ENGINES", (entry, *engines.ENGINES))
    assert engines.engine_of_form("csv") is entry
    with hubbub.open(demo(tmp_path)) as h:
        assert len(h.query("SELECT COUNT(*) AS n FROM health", epsilon=1).rows) == 1


def test_recipe_endpoint(follow: Follow, tmp_path: Path) -> None:
    module = follow("endpoint", "hubbub.server.api.greeting")
    service = Service(demo(tmp_path), Settings(secret=b"s" * 32, quantum=0.0))
    app = create_app(service)
    app.router.routes.insert(0, Frame(service).route("/greeting", module.show))
    app.router.routes[:0] = module.router.routes
    analyst = next(iter(service.current.config.policy.analysts))
    token = service.accounts.issue(analyst, "analyst", 1).text

    async def get(path: str, **headers: str) -> httpx2.Response:
        transport = httpx2.ASGITransport(app, client=("127.0.0.1", 1))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.get(path, headers=headers)

    try:
        assert asyncio.run(get("/api/v1/greeting")).status_code == 401
        answer = asyncio.run(get("/api/v1/greeting", Authorization=f"Bearer {token}"))
        assert answer.json() == {"greeting": f"Hello, {analyst}."}
        assert asyncio.run(get("/greeting")).status_code == 303  # to the sign-in page
    finally:
        service.close()


def test_recipe_attack(follow: Follow) -> None:
    follow("attack", "hubbub.attacks.coin")
    attack = Attack("coin", "hubbub.attacks.coin:study", "guess a bit from one randomized response")
    study = attack.run(epsilons=["1"], generator=np.random.default_rng(1), settings={"trials": "400"})
    assert study.findings[0].score.share == 1
    assert study.findings[1].held


def test_recipe_command(follow: Follow, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    follow("command", "hubbub.cli.hello")
    monkeypatch.setitem(cli.COMMANDS, "hello", "greet someone")
    assert cli.main(["hello", "ana"]) == 0
    assert capsys.readouterr().out == "Hello, ana.\n"


def test_recipe_error(follow: Follow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = follow("error", "hubbub.color")
    with pytest.raises(ParameterError) as raised:
        module.color("blue")
    assert raised.value.code == "HB998"
    monkeypatch.setattr(errors, "SOURCE", tmp_path)
    (tmp_path / "color.py").write_text(RECIPES["error"])
    assert errors.codes() == {"HB998"}
    expected = errors.Message("HB998", "Unknown color {…}.", "Use red or green.", "color")
    assert errors.messages.__wrapped__() == [expected]
