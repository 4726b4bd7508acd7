"""The key of a charge is a stored format: written out here by hand, and made of what was asked and declared alone."""

from dataclasses import replace
from datetime import date
from fractions import Fraction
from hashlib import sha256

import pytest

from hubbub.core.events import LaplaceEvent
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.curator import replay

VISITS = Table(
    "visits",
    (
        Column("site", Kind.TEXT, values=("North", "South"), other="else"),
        Column("cost", Kind.REAL, bounds=Bounds(Fraction(0), Fraction(1000)), step=Fraction(1, 4)),
        Column("day", Kind.DATE, values=(date(2026, 1, 31),)),
    ),
    PrivacyUnit("person", groups=2, rows=3),
)
TEXT = "SELECT COUNT(*) AS n FROM visits -- rows = 3"
EVENT = LaplaceEvent(sensitivity=1, scale=Fraction(10))
#: Format 2, in full. It may never change: questions that were paid for would cost again.
WRITTEN = (
    '{"epsilon":"1/10","event":{"mechanism":"laplace","scale":"10","sensitivity":1},"format":2,'
    '"query":"SELECT COUNT(*) AS n FROM visits -- rows = 3","tables":[{"columns":['
    '{"bounds":["0","1000"],"kind":"real","name":"cost","step":"1/4"},'
    '{"kind":"date","name":"day","values":[{"date":"2026-01-31"}]},'
    '{"kind":"text","name":"site","other":"else","values":["North","South"]}],"name":"visits",'
    '"relation":"add_remove","unit":{"column":"person","groups":2,"rows":3}}],"versions":{"visits":"4"}}'
)


def key(table: Table = VISITS, *, text: str = TEXT, epsilon: Fraction = Fraction(1, 10), version: str = "4") -> str:
    return replay.key(text, event=EVENT, epsilon=epsilon, tables=[table], versions={"visits": version})


def test_a_key_of_format_two_is_the_hash_of_this_text() -> None:
    assert key() == f"replay 2 {sha256(WRITTEN.encode()).hexdigest()}"


@pytest.mark.parametrize(
    "other",
    [
        key(text=f"{TEXT} "),
        key(epsilon=Fraction(1, 5)),
        key(version="5"),
        key(replace(VISITS, unit=PrivacyUnit("person", groups=2, rows=4))),
        key(replace(VISITS, unit=PrivacyUnit(None))),
        key(replace(VISITS, columns=VISITS.columns[:2])),
        key(replace(VISITS, columns=(replace(VISITS.columns[0], values=("South", "North")), *VISITS.columns[1:]))),
    ],
)
def test_another_question_declaration_or_state_has_another_key(other: str) -> None:
    assert other != key()


def test_the_order_of_columns_and_what_nobody_asked_about_leave_the_key_alone() -> None:
    turned = replace(VISITS, columns=VISITS.columns[::-1])
    assert key(turned) == key(replace(VISITS, unit=PrivacyUnit("person", 2, 3, entity="patient"))) == key()
