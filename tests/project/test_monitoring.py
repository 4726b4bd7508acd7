"""Alert rules and the dashboard name metrics, labels and routes that a server really has."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from hubbub.server.metrics import BUCKETS, Metrics

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "packaging" / "monitoring"
NAME = re.compile(r"\b(hubbub_[a-z_]+)(?:\{([^}]*)\})?")
LABEL = re.compile(r'(\w+)(?:=~|=)"([^"]*)"')
#: Labels that Prometheus itself adds.
ADDED = {"job", "instance"}


def rules() -> list[dict[str, Any]]:
    """The alert rules."""
    (group,) = yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def dashboard() -> dict[str, Any]:
    """The dashboard."""
    found: dict[str, Any] = json.loads((FOLDER / "grafana.json").read_text())
    return found


def expressions() -> list[str]:
    """Every expression of both."""
    panels = [target["expr"] for panel in dashboard()["panels"] for target in panel["targets"]]
    return [*(rule["expr"] for rule in rules()), *panels]


@pytest.fixture(scope="module")
def shown() -> dict[str, set[str]]:
    """The metrics of a server, each with its labels, read from the text that Prometheus reads."""
    metrics = Metrics()
    metrics.count("/api/v1/query", "POST", 200, 0.1)
    source = (ROOT / "src/hubbub/server/audit_service.py").read_text()
    gauges = re.findall(r'^\s+"(\w+)": \("[A-Z]', source, re.MULTILINE)
    assert len(gauges) >= 3
    text = metrics.text(dict.fromkeys(gauges, ("Meaning.", 0.0)))
    found: dict[str, set[str]] = {}
    for line in text.splitlines():
        if match := re.fullmatch(r"(hubbub_\w+)(?:\{(.*)\})? \S+", line):
            found.setdefault(match[1], set()).update(re.findall(r'(\w+)="', match[2] or ""))
    return found


def unknown(expression: str, shown: dict[str, set[str]]) -> list[str]:
    """The metrics and labels of an expression that no server has."""
    problems = []
    for name, labels in NAME.findall(expression):
        if name not in shown:
            problems.append(name)
            continue
        problems += [label for label, _ in LABEL.findall(labels) if label not in shown[name] | ADDED]
    return problems


def test_every_metric_and_label_is_one_of_a_server(shown: dict[str, set[str]]) -> None:
    assert expressions()
    assert [(each, unknown(each, shown)) for each in expressions() if unknown(each, shown)] == []


@pytest.mark.parametrize(
    "planted", ["rate(hubbub_request_total[5m])", 'hubbub_requests_total{code="5xx"}', "hubbub_queries_waitng > 0"]
)
def test_a_misspelled_metric_or_label_is_found(planted: str, shown: dict[str, set[str]]) -> None:
    assert unknown(planted, shown)


def test_every_metric_of_a_server_is_on_the_dashboard(shown: dict[str, set[str]]) -> None:
    used = {name for expression in expressions() for name, _ in NAME.findall(expression)}
    assert used == set(shown)


def test_buckets_statuses_and_routes_are_real() -> None:
    from hubbub.server.api.queries import router

    labels = [pair for expression in expressions() for pair in LABEL.findall(expression)]
    assert {float(value) for label, value in labels if label == "le"} <= set(BUCKETS)
    assert {value for label, value in labels if label == "status"} <= {"2xx", "3xx", "4xx", "5xx"}
    routes = [str(getattr(route, "path", "")) for route in router.routes]
    for pattern in {value for label, value in labels if label == "route"}:
        assert any(re.fullmatch(pattern, route) for route in routes), pattern


def test_every_alert_says_what_it_means_and_what_to_do() -> None:
    for rule in rules():
        assert set(rule["annotations"]) == {"summary", "description"}
        assert rule["labels"]["severity"] in ("page", "warn")
    assert len({rule["alert"] for rule in rules()}) == len(rules())


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard()["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        assert max(x for x, _ in cells) < 24
        taken |= cells
