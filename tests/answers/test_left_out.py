"""What an answer says about its bounds: one sentence in plain words, the same facts as JSON, and old receipts."""

import json
from dataclasses import replace

import pytest

from hubbub.answers.left_out import Clamp, Evidence, LeftOut, Share

HALF = Share(0.503, 0.475, 0.531)
FULL = LeftOut(
    "flights",
    "tailnum",
    12,
    60,
    by="origin",
    filtered=True,
    clamped=(Clamp("air_time", "0", "400", Share(0.01, 0.0, 0.02)), Clamp("delay", "-60", "120")),
    share=HALF,
    evidence=Evidence(17, older=True, level=512, above=71),
)

SENTENCES = {
    "rows": (
        LeftOut("flights", "tailnum", rows=60, by="", share=HALF, evidence=Evidence(3)),
        "Each tailnum counts with at most 60 rows. This leaves out about 50% (±2.8%) of the rows of flights, according"
        " to its profile (charge 3). Rows where tailnum is NULL are in no answer.",
    ),
    "unknown": (
        LeftOut("flights", "tailnum", 12, 1, by="origin"),
        "Each tailnum counts in at most 12 groups, with at most 1 row in each. What share of the rows of flights this"
        " leaves out is not known; `hubbub profile flights` estimates it. Rows where tailnum is NULL are in no answer.",
    ),
    "not covered": (
        LeftOut("flights", "tailnum", 12, 60, evidence=Evidence(3)),
        "Each tailnum counts in at most 12 groups, with at most 60 rows in each. What share of the rows of flights this"
        " leaves out is not known: the profile does not cover this query. Rows where tailnum is NULL are in no answer.",
    ),
    "units": (
        LeftOut("flights", "tailnum", counts="units", by=""),
        "Each tailnum counts once. Rows where tailnum is NULL are in no answer.",
    ),
    "pairs": (
        LeftOut("flights", "tailnum", 2, counts="units", by="origin", share=Share(0, 0, 0.04), evidence=Evidence(3)),
        "Each tailnum counts in at most 2 groups. This leaves out at most 4.0% of the groups that units of flights are"
        " in, according to its profile (charge 3). Rows where tailnum is NULL are in no answer.",
    ),
    "joined": (
        LeftOut("a and b", "id", rows=3, maximum=50, joined=40, share=Share(0, 0, 0.04), evidence=Evidence(0)),
        "Each id counts with at most 3 rows, a bound that the query chose (at most 50). This leaves out at most 4.0% of"
        " the rows, as far as noise lets it see. Before the join, a table keeps at most 40 rows of each id. What that"
        " leaves out is not known, and no interval allows for it. Rows where id is NULL are in no answer.",
    ),
    "single rows": (LeftOut("people"), "The answer counts every row."),
    "clamped": (LeftOut("people", clamped=(Clamp("age", "0", "110"),)), "age is clamped to 0 to 110."),
    "full": (
        FULL,
        "Each tailnum counts in at most 12 groups, with at most 60 rows in each. This leaves out about 50% (±2.8%) of"
        " the rows of flights of units with up to 512 rows, according to its profile (charge 17); at most 71 units have"
        " more. That is the share over the whole dataset; among the selected rows it may differ. air_time"
        " is clamped to 0 to 400; about 1.0% (±1.0%) of its values (one row of each tailnum) are outside. delay is"
        " clamped to -60 to 120. Rows where tailnum is NULL are in no answer. The profile is of another version or part"
        " of the data.",
    ),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_the_sentence_says_what_is_bounded_and_what_is_known(name: str) -> None:
    left_out, sentence = SENTENCES[name]
    assert left_out.sentence() == sentence


@pytest.mark.parametrize("name", SENTENCES)
def test_json_keeps_everything_and_has_the_sentence(name: str) -> None:
    left_out, sentence = SENTENCES[name]
    form = json.loads(json.dumps(left_out.shown()))
    assert form["text"] == sentence
    assert LeftOut.from_json(form) == left_out
    assert LeftOut.from_json({**form, "added_later": 1}) == left_out


def test_a_bound_that_the_query_found_is_stated_with_its_maximum() -> None:
    before = LeftOut("flights", "tailnum", maximum=10_000)
    after = LeftOut("flights", "tailnum", rows=97, maximum=10_000, share=Share(0.01, 0.0, 0.02), evidence=Evidence(0))
    assert "10,000" in before.sentence()
    assert "profile" not in before.sentence() + after.sentence()
    assert "97 rows" in after.sentence()
    assert "about 1.0%" in after.sentence()


def test_an_old_receipt_states_its_contribution_bounds() -> None:
    data = [{"dataset": "visits", "unit": "patient", "version": "3"}]
    old = LeftOut.from_receipt({"data": data, "bounds": {"groups": 2, "rows": 4}})
    assert old == LeftOut("visits", "patient", 2, 4)
    assert "not known" in old.sentence()
    rows = LeftOut.from_receipt({"data": [{**data[0], "unit": "row"}], "bounds": None})
    assert rows == LeftOut("visits")
    assert LeftOut.from_receipt({}) is None
    assert LeftOut.from_receipt({"data": data, "bounds": None, "left_out": FULL.to_json()}) == FULL


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (Share(0.0, 0.0, 0.0), "none"),
        (Share(0.25, 0.25, 0.25), "25%"),
        (Share(0.9999, 0.998, 1.0), "about 100% (±0.19%)"),
        (Share(0.004, 0.001, 0.007), "about 0.4% (±0.3%)"),
        (Share(0.1, 0.02, 0.6), "about 10% (2.0% to 60%)"),
    ],
)
def test_a_share_is_shown_with_its_margin_of_error(share: Share, text: str) -> None:
    assert share.text() == text


def test_a_bound_on_all_rows_is_stated_and_a_profile_covers_it_where_it_is_the_only_one() -> None:
    alone = LeftOut("t", "patient", 5, 5, by="ward", rows_total=5)
    assert "with at most 5 rows in each, and at most 5 rows in all groups together." in alone.sentence()
    assert "`hubbub profile t` estimates it" in alone.sentence()
    assert "`hubbub profile t` shows how many rows" in replace(alone, groups=2).sentence()
    assert LeftOut.from_json(alone.to_json()) == alone
