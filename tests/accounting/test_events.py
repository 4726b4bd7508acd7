"""Every kind of event has its accounting, in a module of its own."""

from fractions import Fraction
from types import ModuleType
from typing import get_args

import pytest

from hubbub.accounting import events
from hubbub.accounting.cost import privacy_cost
from hubbub.accounting.events import ACCOUNTING
from hubbub.accounting.events.base import EventAccounting
from hubbub.core.events import (
    BinomialEvent,
    Composed,
    Event,
    LaplaceEvent,
    ProposalEvent,
    ResponseEvent,
    SmoothEvent,
    ThresholdEvent,
)
from hubbub.errors import ParameterError


def test_every_event_but_composition_has_its_accounting() -> None:
    assert set(ACCOUNTING) == set(get_args(Event)) - {Composed}


def test_every_module_serves_exactly_one_event() -> None:
    modules = [value for value in vars(events).values() if isinstance(value, ModuleType)]
    accounts = [module.ACCOUNTING for module in modules if hasattr(module, "ACCOUNTING")]
    assert all(isinstance(account, EventAccounting) for account in accounts)
    assert len(accounts) == len(set(map(id, accounts))) == len(ACCOUNTING)
    assert {id(account) for account in ACCOUNTING.values()} == set(map(id, accounts))


@pytest.mark.parametrize(
    "event",
    [
        LaplaceEvent(0, Fraction(1)),
        LaplaceEvent(1, Fraction(-1)),
        ResponseEvent(1, Fraction(1)),
        ThresholdEvent(LaplaceEvent(0, Fraction(1)), keys=1, above=1),
        ThresholdEvent(LaplaceEvent(1, Fraction(1)), keys=0, above=1),
        Composed(((ResponseEvent(1, Fraction(1)), 1),)),
        SmoothEvent(0, Fraction(1), Fraction(1)),
        SmoothEvent(4, Fraction(0), Fraction(1)),
        BinomialEvent(0, 4, Fraction(1)),
        BinomialEvent(1, 0, Fraction(1)),
        BinomialEvent(1, 4, Fraction(0)),
        ProposalEvent(LaplaceEvent(1, Fraction(0)), LaplaceEvent(1, Fraction(1)), 1),
        ProposalEvent(LaplaceEvent(1, Fraction(1)), LaplaceEvent(0, Fraction(1)), 1),
        ProposalEvent(LaplaceEvent(1, Fraction(1)), LaplaceEvent(1, Fraction(1)), 0),
    ],
)
def test_an_event_that_no_mechanism_can_have_produced_is_rejected(event: Event) -> None:
    with pytest.raises(ParameterError, match="HB105"):
        privacy_cost(event)
