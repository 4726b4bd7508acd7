"""Reports of studies as HTML, SVG, JSON and PDF, including hostile text."""

import json
import re
import zlib
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from hubbub.attacks import report
from hubbub.attacks.base import AttackFinding, AttackStudy, Score, ceiling
from hubbub.attacks.report_plot import _DEEP, _TOP, plot, series
from hubbub.errors import AttackError

EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(3))
HOSTILE = "<script>alert(1)</script>\"'&=cmd|' /C calc'!A0 $\\frac{1}{0}$ {{ 7 * 7 }} \u202e 漢字"


def example_study(
    *, right: tuple[int, ...] = (260, 350, 470), chance: float = 0.5, words: str = "plain"
) -> AttackStudy:
    bare = [
        AttackFinding("unprotected", None, Score(500, 500, chance), None, {"answers": 2}),
        AttackFinding(f"rounded {words}", None, Score(430, 500, chance), None),
    ]
    kept = [AttackFinding("hubbub", e, Score(n, 500, chance), ceiling(e)) for e, n in zip(EPSILONS, right, strict=True)]
    return AttackStudy("differencing", f"Two counts {words}", (f"It was right. {words}",), (*bare, *kept))


def tree(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(re.sub(r' xmlns="[^"]+"', "", svg))


def share(y: float) -> float:
    return 1 - (y - _TOP) / _DEEP


def test_every_finding_is_drawn_at_its_share_with_its_interval() -> None:
    study = example_study()
    marks = [each for each in tree(plot(study)).iter("g") if (each.get("class") or "").startswith("tone-")]
    assert len(marks) == len(study.findings)
    for mark, finding in zip(marks, study.findings, strict=True):
        whisker, shape = mark.findall("svg")
        line = whisker.find("line")
        assert line is not None
        assert share(float(line.get("y1", ""))) == pytest.approx(finding.score.low, abs=0.001)
        assert share(float(line.get("y2", ""))) == pytest.approx(finding.score.high, abs=0.001)
        assert share(float(shape.get("y", ""))) == pytest.approx(finding.score.share, abs=0.001)
        assert finding.label in (mark.findtext("title") or "")


def test_places_across_rise_with_epsilon_and_end_before_those_without_a_promise() -> None:
    study = example_study()
    marks = [each for each in tree(plot(study)).iter("g") if each.get("class")]
    positions = [float((mark.findall("svg")[0].get("x") or "").strip("%")) for mark in marks]
    bare, kept = positions[:2], positions[2:]
    assert kept == sorted(kept)
    assert max(kept) < min(bare)
    assert all(0 < x < 100 for x in positions)
    # ε has a logarithmic scale: 0.1 to 1 is as wide as 1 to 10
    assert (kept[1] - kept[0]) / (kept[2] - kept[0]) == pytest.approx(0.677, abs=0.003)


def test_the_ceiling_is_the_curve_of_one_bit() -> None:
    drawn = [each for each in tree(plot(example_study())).iter("line") if each.get("class") == "ceiling"]
    curve = drawn[:-1]  # the last one is in the legend
    assert len(curve) == 40
    points = next(each for each in series(example_study()) if each.guaranteed).ceiling
    for line, (epsilon, most) in zip(curve, points[:-1], strict=True):
        assert most == pytest.approx(float(ceiling(Fraction(epsilon))))
        assert share(float(line.get("y1", ""))) == pytest.approx(most, abs=0.001)


def test_a_ceiling_of_another_distribution_is_joined_by_straight_lines() -> None:
    study = example_study()
    kept = tuple(replace(each, ceiling=0.9) if each.ceiling else each for each in study.findings)
    points = next(each for each in series(replace(study, findings=kept)) if each.guaranteed).ceiling
    assert [most for _, most in points] == [0.9, 0.9, 0.9]


def test_chance_is_drawn() -> None:
    (line, _) = [each for each in tree(plot(example_study(chance=0.25))).iter("line") if each.get("class") == "chance"]
    assert share(float(line.get("y1", ""))) == pytest.approx(0.25, abs=0.001)


@pytest.mark.parametrize("kept", [slice(0, 2), slice(2, 3), slice(2, 5), slice(0, 1)])
def test_any_part_of_a_study_can_be_drawn(kept: slice) -> None:
    study = example_study()
    part = replace(study, findings=study.findings[kept])
    assert len([each for each in tree(plot(part)).iter("g") if each.get("class")]) == len(part.findings)
    assert report.FORMS["pdf"][1](part, report.ReportContext()).startswith(b"%PDF-")


def test_drawings_have_no_style_and_no_script() -> None:
    for svg in (plot(example_study(words=HOSTILE)), plot(example_study(), alone=True)):
        assert "style=" not in svg
        tags = {each.tag for each in tree(svg).iter()}
        assert tags <= {"svg", "g", "line", "path", "text", "title", "rect"}


def on_hubbub(right: int) -> AttackStudy:
    return replace(
        example_study(), findings=(AttackFinding("hubbub", EPSILONS[0], Score(right, 5000, 0.5), ceiling(EPSILONS[0])),)
    )


@pytest.mark.parametrize(
    ("right", "words"),
    [
        (2600, "within the guarantee"),
        (2650, "within the guarantee"),
        (2720, "above the maximum, maybe by chance"),
        (2900, "GUARANTEE VIOLATED"),
    ],
)
def test_a_broken_promise_is_told_and_only_where_luck_cannot_be(right: int, words: str) -> None:
    """52.5% of 5000 is 2625. An attack at the ceiling has 2720 by chance once in 250 runs, and 2900 once in 10^15."""
    study = on_hubbub(right)
    assert report.row(study.findings[0])[-1].startswith(words)
    assert (report.exceeding_findings(study) != ()) == (right == 2900)
    assert (report.ALARM in report.page(study)) == (right == 2900)


def test_the_gist_says_the_figures() -> None:
    assert report.summarize(example_study()) == (
        "Without a guarantee, 86.0% to 100% of the guesses are correct; with one, at most 52.0% at ε = 0.1 and 94.0% "
        "at ε = 3: within the guarantee; blind guessing achieves 50.0%."
    )
    kept = replace(example_study(), findings=example_study().findings[2:3])
    assert report.summarize(kept).startswith("With a guarantee, at most 52.0% at ε = 0.1: within the guarantee")
    bare = replace(example_study(), findings=example_study().findings[:1])
    assert report.summarize(bare) == (
        "Without a guarantee, 100% of the guesses are correct; blind guessing achieves 50.0%."
    )
    # an ε per answer without accounting is not a guarantee
    loose = replace(
        example_study(),
        findings=(replace(example_study().findings[0], epsilon=Fraction(1, 10)), *example_study().findings[2:]),
    )
    assert report.summarize(loose).startswith("Without a guarantee, 100% of the guesses are correct; with one")
    assert "MORE THAN THE GUARANTEE ALLOWS" in report.summarize(example_study(right=(400, 400, 400)))


class Tags(HTMLParser):
    """All tags with their attributes, and all text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_a_page_stands_by_itself_and_runs_nothing() -> None:
    page = report.page(example_study(words=HOSTILE), report.ReportContext(terms={"Table": HOSTILE}))
    seen = Tags(page)
    assert not {tag for tag, _ in seen.tags} & {"script", "link", "img", "iframe", "object", "form", "a", "base"}
    for _, attributes in seen.tags:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "href", "style")]
    assert any("default-src 'none'" in (each.get("content") or "") for _, each in seen.tags)
    assert sum(HOSTILE in words for words in seen.words) >= 4  # title, heading, sentence, table: as text
    assert "49" not in "".join(words for words in seen.words if "{{" in words)


def test_a_page_says_all_figures() -> None:
    study = example_study()
    page = "".join(Tags(report.page(study)).words)
    for finding in study.findings:
        for cell in report.row(finding):
            assert cell in page
    assert "answers: 2" in page
    for words in (*study.words, *report.READING):
        assert words in page


_STRING = rb"\((?:\\.|[^\\()])*\)"


def text_of(pdf: bytes) -> str:
    """Read the text of a PDF by matplotlib: two bytes per letter, in kerned strings."""
    texts = []
    for stream in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL):
        try:
            content = zlib.decompress(stream)
        except zlib.error:
            continue
        for block in re.findall(rb"\bBT\b(.*?)\bET\b", content, re.DOTALL):
            parts = b"".join(each[1:-1] for each in re.findall(_STRING, block, re.DOTALL))
            texts.append(re.sub(rb"\\(.)", rb"\1", parts).decode("utf-16-be", "replace"))
    return "\n".join(texts)


WORDS = (
    "Two counts plain",
    "It was right. plain",
    "Figures",
    "How to read this",
    "What was run",
    "unprotected",
    "86.0% of 500",
    "within the guarantee",
    "Table: made up",
    "2026-03-01 12:30 UTC",
    "page 3",
)


def test_a_pdf_has_pages_with_text() -> None:
    at = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
    many = example_study()
    long = replace(many, findings=many.findings * 20, words=many.words * 5)
    pdf = report.FORMS["pdf"][1](long, report.ReportContext(at, {"Table": "made up"}))
    assert pdf.startswith(b"%PDF-")
    assert pdf.rstrip().endswith(b"%%EOF")
    assert len(re.findall(rb"/Type /Page\b", pdf)) >= 3
    text = text_of(pdf)
    for words in WORDS:
        assert words in text, words


def test_a_pdf_takes_no_text_for_a_formula_and_asks_for_no_font() -> None:
    """Warnings are errors here: a missing glyph or a broken formula would raise."""
    pdf = report.FORMS["pdf"][1](example_study(words=HOSTILE), report.ReportContext(terms={HOSTILE: HOSTILE}))
    text = text_of(pdf)
    assert r"$\frac{1}{0}$" in text
    assert "??" in text
    assert b"/JavaScript" not in pdf


def test_a_report_is_written_in_the_form_of_its_name(tmp_path: Path) -> None:
    study = example_study()
    for form in report.FORMS:
        report.write(study, tmp_path / f"out.{form}")
    assert (tmp_path / "out.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "out.svg").read_text().startswith("<svg")
    document = json.loads((tmp_path / "out.json").read_text())
    assert AttackStudy.read(document) == study
    assert document["run"]["Attack"] == "differencing"
    with pytest.raises(AttackError, match="HB646"):
        report.write(study, tmp_path / "out.docx")
    assert not (tmp_path / "out.docx").exists()
