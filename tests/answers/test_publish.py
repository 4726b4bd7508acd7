"""Published files: the same numbers in each, a data sheet that says what they are, and nothing overwritten."""

import csv
import json
import re
from datetime import date
from fractions import Fraction
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import duckdb
import pytest

from hubbub.answers.publish import publish
from hubbub.answers.release import Output, Release
from hubbub.answers.sheet import METHODS, sheet
from hubbub.core.events import Composed, GaussianEvent, LaplaceEvent, to_facts
from hubbub.errors import ParameterError


def release(**receipt: Any) -> Release:
    event = Composed(((LaplaceEvent(1, Fraction(2)), 1), (GaussianEvent(1, Fraction(9)), 2)))
    facts = {
        "query": "SELECT kind, COUNT(*) FROM visits GROUP BY kind",
        "data": [{"dataset": "visits", "unit": "patient", "version": "3"}],
        "relation": "add_remove",
        "bounds": {"groups": 2, "rows": 4},
        "derivation": ["scan visits", "count: moves by 8 | at most"],
        "event": to_facts(event),
        "ledger": [{"dataset": "visits", "time": 1_700_000_000_000_000}],
    } | receipt
    outputs = (
        Output("kind", "text", ["a|b", "", None]),
        Output("day", "date", [date(2020, 1, 2), None, date(1999, 12, 31)]),
        Output("known", "boolean", [True, False, None]),
        Output('n "x"', "integer", [12, 0, 2**60], [2.0, 0.0, 1.5], [22.0, 10.0, 2.5]),
        Output("mean", "real", [0.1, None, -2.5], [0.05, None, -3.0], [0.15, None, -2.0]),
    )
    return Release(outputs, [None] * 3, Fraction(1, 2), Fraction(1, 10**6), facts)


class Page(HTMLParser):
    """Every tag that is opened is closed, and nothing is fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not {"src", "href"} & {name for name, _ in attrs}
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_all_files_hold_the_same_numbers(tmp_path: Path) -> None:
    given = release()
    written = {path.suffixes[-1]: path for path in publish(given, tmp_path / "new" / "folder", name="visits-2026")}
    with written[".csv"].open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row['n "x"'] for row in rows] == ["12", "0", str(2**60)]
    with duckdb.connect() as reader:
        found = reader.execute(f"SELECT * FROM '{written['.parquet']}'").fetchall()
        kinds = [kind for _, kind, *_ in reader.execute(f"DESCRIBE FROM '{written['.parquet']}'").fetchall()]
        kept = reader.execute(f"SELECT value FROM parquet_kv_metadata('{written['.parquet']}')").fetchone()
    assert kinds[:4] == ["VARCHAR", "DATE", "BOOLEAN", "BIGINT"]
    assert found == [
        ("a|b", date(2020, 1, 2), True, 12, 2.0, 22.0, 0.1, 0.05, 0.15),
        ("", None, False, 0, 0.0, 10.0, None, None, None),
        (None, date(1999, 12, 31), None, 2**60, 1.5, 2.5, -2.5, -3.0, -2.0),
    ]
    assert kept is not None
    assert json.loads(kept[0])["query"] == given.receipt["query"]
    assert json.loads(written[".json"].read_text()) == json.loads(json.dumps(given.document()))


def test_the_sheet_says_what_was_measured_how_exact_and_at_which_price(tmp_path: Path) -> None:
    paths = publish(release(), tmp_path, title="Visits <of 2026>", notes="Ask the office.")
    markdown, page = (next(p for p in paths if p.suffix == end).read_text() for end in (".md", ".html"))
    parser = Page()
    parser.feed(page)
    assert parser.open == []
    plain = re.sub(r"\\(.)", r"\1", markdown)
    for text in (plain, parser.text):
        for said in (
            "Visits <of 2026>",
            "Ask the office.",
            "GROUP BY kind",
            "2023-11-14",
            "visits (version 3)",
            "ε = 0.5",
            "δ = 1e-06",
            # with δ: e^(1.1ε) = 1.7333, exceeded with probability at most 1e-6/(1 − e^(−ε/10)) = 2.0505e-5
            "The odds of any fact about one unit rise by a factor of at most 1.74, except with probability 2.06e-05",
            "Joining the data makes no consequence of the answers more than 1.65 times as likely, plus 1e-06",
            "1 × laplace, 2 × gaussian",
            "all rows with the same value of patient",
            "added or removed",
            "at most 2 groups, with at most 4 rows in each",
            METHODS["query"][:60],
            "moves by 8 | at most",
            "hubbub verify",
        ):
            assert said in text
    for path in paths[:3]:
        assert sha256(path.read_bytes()).hexdigest() in markdown
    # the error per cell: 10 is typical for the counts, and cut intervals count by their upper half
    assert '| n "x" | 10 | 10 | 3 |' in plain


def test_the_error_is_told_table_by_table_where_the_first_column_names_tables() -> None:
    names = ["total", *["a"] * 3, *["a × b"] * 6]
    half = [1.0, *[2.0] * 3, *[3.0] * 6]
    outputs = (
        Output("table", "text", names),
        Output("count", "integer", [9] * 10, [9 - h for h in half], [9 + h for h in half]),
    )
    made = sheet(
        Release(outputs, [None] * 10, Fraction(1), Fraction(0), {"analysis": "tabulate"}), title="t"
    ).markdown()
    assert METHODS["tabulate"][:50] in made
    assert "| total | count | 1 | 1 | 1 |" in made
    assert "| a × b | count | 3 | 3 | 6 |" in made
    assert "δ = 0" in made


def test_nothing_is_overwritten_unless_forced(tmp_path: Path) -> None:
    publish(release(), tmp_path)
    with pytest.raises(ParameterError, match="already exists"):
        publish(release(), tmp_path)
    assert len(publish(release(), tmp_path, force=True)) == 5
    assert len(publish(release(), tmp_path, name="other", formats=["csv"])) == 4


@pytest.mark.parametrize("name", ["../out", ".hidden", "a/b", "", " ", "x" * 81, "ä"])
def test_names_that_would_leave_the_folder_are_refused(tmp_path: Path, name: str) -> None:
    if name:
        with pytest.raises(ParameterError, match="HB172"):
            publish(release(), tmp_path / "in", name=name)
    assert not (tmp_path / "in").exists()


def test_formats_and_folders_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="Unknown data format"):
        publish(release(), tmp_path, formats=["xlsx"])
    (tmp_path / "file").write_text("")
    with pytest.raises(ParameterError, match="Could not write"):
        publish(release(), tmp_path / "file" / "folder")


def test_an_empty_release_has_empty_files(tmp_path: Path) -> None:
    empty = Release((Output("n", "integer", [], [], []),), [], Fraction(1), Fraction(0), {})
    paths = publish(empty, tmp_path)
    with duckdb.connect() as reader:
        assert reader.execute(f"SELECT count(*) FROM '{paths[1]}'").fetchall() == [(0,)]


def test_an_answer_from_public_tables_promises_no_privacy() -> None:
    receipt = {
        "public": True,
        "query": "SELECT 1 AS a FROM t",
        "data": [{"dataset": "t", "version": "1"}],
        "ledger": [],
    }
    exact = Release((Output("a", "integer", [1]),), [None], Fraction(0), Fraction(0), receipt)
    text = sheet(exact, title="t", files=[("t.csv", "00")], notes="Mine.").markdown()
    assert "Answered exactly from t" in text
    assert "t.csv" in text
    for word in ("noisy", "ε", "guarantee", "hubbub verify"):
        assert word not in text
