"""The set-up page: its steps, what it writes, who may use it, and what it refuses."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
import yaml
from tests.fixtures.page_visits import Outline, token
from tests.fixtures.postgres_server import Server
from tests.server.conftest import InProcess, Loop

from hubbub.config import load
from hubbub.config.template import template
from hubbub.engines.base import locate
from hubbub.engines.duckdb.connection import guess_types
from hubbub.errors import ConfigError
from hubbub.server.middleware import HEADERS
from hubbub.server.setup.app import create_app, listen
from hubbub.server.setup.draft import SetupDraft
from hubbub.server.setup.pages import SetupPages
from hubbub.server.setup.sources import choose_files, files_in, tables_of

CSV = "patient,age,region,seen\n1,30,North,2024-01-02\n1,31,North,2024-02-03\n2,50,South,2024-03-04\n"
PEOPLE = {"unit-0": "column", "column-0": "patient", "rows-0": "auto"}
COLUMNS = {
    "kind-0-0": "integer",
    "use-0-0": "filter",
    "values-0-0": "",
    "kind-0-1": "integer",
    "use-0-1": "bounds",
    "values-0-1": "0, 110",
    "kind-0-2": "text",
    "use-0-2": "values",
    "values-0-2": "North, South",
    "kind-0-3": "date",
    "use-0-3": "bounds",
    "values-0-3": "2024-01-01, 2024-12-31",
}
BUDGET = {"epsilon-0": "3", "per_query-0": "", "delta-0": "yes"}
ANALYST = {"name": "ana", "cap-0": "0.5"}


@dataclass
class Place:
    """A folder without hubbub.yaml, and its set-up page."""

    folder: Path
    setup: SetupPages
    transport: InProcess
    finished: list[str]

    def browser(self) -> httpx2.Client:
        """Give a browser that has visited nothing yet."""
        return httpx2.Client(transport=self.transport, base_url="http://127.0.0.1:8321", follow_redirects=True)

    def begin(self) -> httpx2.Client:
        """Open the link of the terminal, and begin."""
        client = self.browser()
        page = client.get("/setup", params={"token": self.setup.access.link_token})
        assert "Begin" in page.text
        client.post("/setup", data={"link_token": self.setup.access.link_token})
        return client

    def walk(self, client: httpx2.Client, until: str = "review", **changes: dict[str, str]) -> httpx2.Response:
        """Take the steps up to one, and show it."""
        steps = {"data": {"table-0": "visits.csv"}, "people": PEOPLE, "columns": COLUMNS, "budget": BUDGET}
        steps |= {"analyst": ANALYST} | changes
        page = client.get("/setup/data")
        for step, form in steps.items():
            if step == until:
                break
            page = send(client, step, form)
            assert page.status_code == 200, page.text
        return page


def send(client: httpx2.Client, step: str, form: dict[str, str]) -> httpx2.Response:
    """Send the form of a step."""
    page = client.get("/setup/data")
    return client.post(f"/setup/{step}", data={"csrf": token(page), **form})


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    (tmp_path / "visits.csv").write_text(CSV)
    finished: list[str] = []

    async def finish() -> None:
        finished.append("yes")

    setup = SetupPages(SetupDraft(tmp_path / "hubbub.yaml"), "http://127.0.0.1:8321", finish)
    with Loop() as loop:
        yield Place(tmp_path, setup, InProcess(create_app(setup), loop, ("127.0.0.1", 50000)), finished)


def test_the_file_says_what_was_chosen_with_the_comments_of_init(place: Place) -> None:
    client = place.begin()
    page = place.walk(client)
    assert not (place.folder / "hubbub.yaml").exists()
    assert "at most 95.3% sure: odds of 1 to 1 become at most 20.1 to 1" in page.text
    done = send(client, "write", {})
    written = yaml.safe_load((place.folder / "hubbub.yaml").read_text())
    assert written == {
        "version": 1,
        "datasets": {
            "visits": {
                "source": "visits.csv",
                "unit": {"column": "patient", "rows": "auto"},
                "relation": "add_remove",
                "columns": {
                    "patient": {"type": "integer"},
                    "age": {"type": "integer", "bounds": [0, 110]},
                    "region": {"type": "text", "values": ["North", "South"]},
                    "seen": {"type": "date", "bounds": ["2024-01-01", "2024-12-31"]},
                },
                "budget": {"epsilon": 3, "delta": "1e-9"},
            }
        },
        "analysts": {"ana": {"visits": {"epsilon": 0.5}}},
    }
    text = (place.folder / "hubbub.yaml").read_text()
    source = locate("visits.csv", "FILE", base=place.folder, name="")
    blank = template([("visits", "visits.csv", guess_types(source))], analyst="ana", guessed=True)
    comments = [line for line in blank.splitlines() if line.lstrip().startswith("#")]
    missing = [line for line in comments if line not in text.splitlines()]
    assert [line.split()[1] for line in missing] == ["Written", "Fill", "Who", "delta:"]
    assert (place.folder / "hubbub.yaml").stat().st_mode & 0o777 == 0o600
    assert place.finished == ["yes"]
    owner, ana = re.findall(r"hub_[0-9a-f]{12}_[\w-]{43}", done.text)
    assert owner != ana
    assert load(place.folder / "hubbub.yaml").policy.analysts.keys() == {"ana"}


def test_only_the_browser_that_opened_the_link_gets_in(place: Place) -> None:
    stranger = place.browser()
    for address in ("/", "/setup", "/setup?token=guess", "/setup/data", "/setup/review"):
        refused = stranger.get(address)
        assert refused.status_code == 403
        assert "HB382" in refused.text
        assert "visits.csv" not in refused.text
    assert stranger.post("/setup", data={"link_token": "guess"}).status_code == 403
    # a preview of the link does not use it up
    assert "Begin" in stranger.get("/setup", params={"token": place.setup.access.link_token}).text
    owner = place.begin()
    assert "visits.csv" in owner.get("/setup/data").text
    for second in (stranger, place.browser()):
        token_ = place.setup.access.link_token
        assert second.get("/setup", params={"token": token_}).status_code == 403
        assert second.post("/setup", data={"link_token": token_}).status_code == 403
        second.cookies.set("hubbub-setup", "guess")
        assert second.get("/setup/data").status_code == 403
    assert owner.get("/setup", params={"token": token_}).status_code == 200
    assert "visits.csv" in owner.get("/setup/data").text


def test_a_form_needs_the_token_of_its_session(place: Place) -> None:
    client = place.begin()
    for step, form in (("data", {"table-0": "visits.csv"}), ("write", {}), ("restart", {})):
        for sent in (form, {**form, "csrf": "guess"}, {**form, "csrf": "ä"}):
            refused = client.post(f"/setup/{step}", data=sent)
            assert refused.status_code == 403
            assert "HB711" in refused.text
    assert place.setup.draft.tables == []


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8321", "192.168.0.7", "localhost.evil.example", ""])
def test_another_host_is_refused(place: Place, host: str) -> None:
    client = place.begin()
    refused = client.get("/setup/data", headers={"Host": host})
    assert refused.status_code == 403
    assert refused.json()["code"] == "HB383"
    assert client.get("/setup/data", headers={"Host": "localhost:8321"}).status_code == 200


def test_pages_have_the_headers_and_the_outline_of_all_pages(place: Place) -> None:
    client = place.begin()
    place.walk(client)
    for step in ("data", "people", "columns", "budget", "analyst", "review"):
        page = client.get(f"/setup/{step}")
        assert {name: page.headers[name] for name in HEADERS} == dict(HEADERS)
        outline = Outline(page.text)
        assert len(outline.all("h1")) == 1
        assert outline.title.startswith("Set up")
        ids = {each["id"] for each in outline.all("input", "select") if each.get("id")}
        assert ids <= {each.get("for") for each in outline.all("label")}
    too_much = client.post("/setup/columns", content=b"x" * (2 << 20))
    assert too_much.status_code == 413


def test_files_are_chosen_from_the_folder_alone(place: Place, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "secret.csv"
    outside.write_text("a\n1\n")
    (place.folder / "linked.csv").symlink_to(outside)
    (place.folder / "folder.csv").mkdir()
    (place.folder / "notes.txt").write_text("")
    assert files_in(place.folder) == ["visits.csv"]
    client = place.begin()
    for name in ("linked.csv", str(outside), f"../{outside.parent.name}/secret.csv", "notes.txt", "sqlite:x#y", ""):
        refused = send(client, "data", {"table-0": name})
        assert refused.status_code == 422
        assert "HB384" in refused.text
    assert "HB384" in send(client, "data", {}).text
    assert place.setup.draft.tables == []


def test_steps_come_in_order_and_can_be_changed(place: Place) -> None:
    client = place.begin()
    assert client.get("/setup/review").url.path == "/setup/data"
    assert client.get("/setup/nonsense").url.path == "/setup/data"
    assert send(client, "budget", BUDGET).url.path == "/setup/data"
    assert send(client, "write", {}).url.path == "/setup/data"
    place.walk(client)
    assert "ana:" in client.get("/setup/review").text
    send(client, "analyst", {"name": "zoe", "cap-0": "1"})
    again = client.get("/setup/review").text
    assert "zoe:" in again
    assert "ana:" not in again
    assert send(client, "people", {"unit-0": "row"}).url.path == "/setup/columns"
    assert re.search(r"unit: +row\n", client.get("/setup/review").text)
    declared = {"unit-0": "column", "column-0": "patient", "rows-0": "declared", "most-0": "7", "groups-0": " 3 "}
    send(client, "people", declared)
    assert "{column: patient, groups: 3, rows: 7}" in client.get("/setup/review").text
    assert 'value="7"' in client.get("/setup/people").text
    send(client, "people", {"unit-0": "row"})
    send(client, "data", {"table-0": "visits.csv"})  # the same table: what was chosen is kept
    assert re.search(r"unit: +row\n", client.get("/setup/review").text)
    assert send(client, "restart", {}).url.path == "/setup/data"
    assert client.get("/setup/review").url.path == "/setup/data"
    assert place.setup.draft.tables == []


@pytest.mark.parametrize(
    ("step", "change", "code"),
    [
        ("people", {"unit-0": ""}, "HB388"),
        ("people", {"column-0": "weight"}, "HB388"),
        ("people", {"rows-0": "declared", "most-0": "none", "groups-0": "1"}, "HB388"),
        ("people", {"rows-0": "declared", "most-0": "3", "groups-0": "0"}, "HB388"),
        ("columns", {"use-0-1": "everything"}, "HB388"),
        ("columns", {"values-0-1": "0"}, "HB387"),
        ("columns", {"values-0-1": "110, 0"}, "HB416"),
        ("columns", {"values-0-1": "0, 110], hidden: true"}, "HB387"),
        ("columns", {"values-0-2": " , "}, "HB387"),
        ("budget", {"epsilon-0": "much"}, "HB102"),
        ("budget", {"epsilon-0": "1/3"}, "HB387"),
        ("budget", {"epsilon-0": "010"}, "HB387"),
        ("columns", {"values-0-1": "0, 010"}, "HB387"),
        ("budget", {"per_query-0": "-1"}, "HB103"),
        ("analyst", {"name": "a: {}\nb"}, "HB388"),
        ("analyst", {"name": "owner"}, "HB388"),
        ("analyst", {"cap-0": "4"}, "HB4"),
    ],
)
def test_a_wrong_step_is_explained_and_changes_nothing(
    place: Place, step: str, change: dict[str, str], code: str
) -> None:
    client = place.begin()
    place.walk(client)
    before = place.setup.draft.text()
    form = {"people": PEOPLE, "columns": COLUMNS, "budget": BUDGET, "analyst": ANALYST}[step]
    refused = send(client, step, {**form, **change})
    assert refused.status_code == 422
    assert re.search(rf'class="code">{code}', refused.text), re.search(r'class="code">\w+', refused.text)
    assert place.setup.draft.text() == before


def test_texts_cannot_break_out_of_the_file(place: Place) -> None:
    client = place.begin()
    place.walk(client, columns={**COLUMNS, "values-0-2": 'no: x, "], hidden: true #, <b>, yes'})
    page = client.get("/setup/review").text
    assert "<b>" not in page
    send(client, "write", {})
    read = yaml.safe_load((place.folder / "hubbub.yaml").read_text())
    assert read["datasets"]["visits"]["columns"]["region"]["values"] == ["no: x", '"]', "hidden: true #", "<b>", "yes"]


def test_a_public_table_has_no_budget(place: Place) -> None:
    (place.folder / "regions.csv").write_text("region,size\nNorth,3\n")
    client = place.begin()
    place.walk(
        client,
        data={"table-0": "regions.csv"},
        people={"unit-0": "public"},
        columns={"kind-0-0": "text", "use-0-0": "filter", "kind-0-1": "integer", "use-0-1": "filter"},
        budget={},
        analyst={"name": "ana"},
    )
    send(client, "write", {})
    config = load(place.folder / "hubbub.yaml")
    assert config.datasets["regions"].table.public
    assert config.policy.analysts == {"ana": {}}


def test_a_file_that_appeared_meanwhile_is_never_replaced(place: Place) -> None:
    client = place.begin()
    place.walk(client)
    (place.folder / "hubbub.yaml").write_text("mine")
    refused = send(client, "write", {})
    assert "HB419" in refused.text
    assert (place.folder / "hubbub.yaml").read_text() == "mine"
    assert place.finished == []
    assert [each.name for each in place.folder.iterdir() if each.name.startswith(".hubbub.yaml.")] == []


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("mysql://db/shop", "HB385"),
        ("postgresql://reader:secret@localhost/shop", "HB386"),
        ("postgresql://reader@localhost/shop?password=secret", "HB386"),
        ("postgresql://reader@localhost/shop?sslpassword=secret", "HB386"),
    ],
)
def test_an_address_with_a_password_is_refused(address: str, code: str) -> None:
    with pytest.raises(ConfigError) as refused:
        tables_of(address)
    assert refused.value.code == code
    assert "secret" not in str(refused.value)


def test_tables_of_postgres_are_offered_and_written(place: Place, postgres_server: Server) -> None:
    postgres_server.run("CREATE DATABASE setup_shop")
    try:
        postgres_server.run("CREATE TABLE orders (customer int NOT NULL, price int, region text)", "setup_shop")
        postgres_server.run("CREATE TABLE secret (id int)", "setup_shop")
        postgres_server.run("CREATE ROLE setup_reader LOGIN", "setup_shop")
        postgres_server.run("GRANT SELECT ON orders TO setup_reader", "setup_shop")
        address = f"postgresql://setup_reader@/setup_shop?host={postgres_server.home}"
        client = place.begin()
        page = send(client, "data", {"look": "yes", "address": address})
        assert "orders" in page.text
        assert "secret" not in page.text
        source = f"postgresql://setup_reader@/setup_shop/public.orders?host={postgres_server.home}"
        refused = send(client, "data", {"table-0": source.replace("orders", "secret")})
        assert "HB384" in refused.text
        columns = {"use-0-0": "filter", "use-0-1": "bounds", "values-0-1": "0, 50", "use-0-2": "filter"}
        people = {"unit-0": "column", "column-0": "customer", "rows-0": "declared", "most-0": "4", "groups-0": "2"}
        place.walk(client, data={"table-0": source}, people=people, columns=columns)
        send(client, "write", {})
        text = (place.folder / "hubbub.yaml").read_text()
        assert yaml.safe_load(text)["datasets"]["orders"]["unit"] == {"column": "customer", "groups": 2, "rows": 4}
        table = load(place.folder / "hubbub.yaml").datasets["orders"].table
        assert [column.name for column in table.columns] == ["customer", "price", "region"]
    finally:
        postgres_server.run("DROP DATABASE setup_shop WITH (FORCE)")
        postgres_server.run("DROP ROLE IF EXISTS setup_reader")


def test_two_files_with_one_name_are_refused(tmp_path: Path) -> None:
    for name in ("a.csv", "A.tsv"):
        (tmp_path / name).write_text("x\n1\n")
    with pytest.raises(ConfigError, match="HB410"):
        choose_files(tmp_path, ["a.csv", "A.tsv"])


def test_the_page_listens_on_the_loopback_address() -> None:
    with listen(0) as first:
        assert first.getsockname()[0] == "127.0.0.1"
        with pytest.raises(ConfigError, match="HB420"):
            listen(first.getsockname()[1])


def test_a_file_may_be_called_like_a_database(place: Place) -> None:
    (place.folder / "postgres_visits.csv").write_text("region,size\nNorth,3\n")
    client = place.begin()
    assert send(client, "data", {"table-0": "postgres_visits.csv"}).url.path == "/setup/people"
