"""Calls to the ledger: charge requests, record a release, look up a charge, add other entries.

Tested in tests/accounting/test_sqlite.py.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from hubbub.accounting.chain import Entry, Kind, facts_text, request_hash
from hubbub.accounting.cost import PrivacyCost, privacy_cost
from hubbub.accounting.group_commit import PendingCall
from hubbub.accounting.policy import Cap, Policy
from hubbub.accounting.refusal import Spent
from hubbub.core.blocks import BlockSet
from hubbub.core.events import Event
from hubbub.errors import ParameterError

_KEY_LENGTH = 200
_QUERY_LENGTH = 1_000_000


class ChargeRequest(NamedTuple):
    """A request to charge: the facts of the mechanism and the query in canonical form, under an idempotency key.

    Keys of different analysts are independent. `version` identifies the state of the data; `blocks` are those that the
    query reads, of a dataset that has some.
    """

    analyst: str
    dataset: str
    version: str
    event: Event
    query: str
    key: str
    blocks: BlockSet | None = None


class Charge(NamedTuple):
    """A durable charge; `release` is the recorded result, if there is one."""

    entry: Entry
    release: bytes | None = None
    replayed: bool = False

    @property
    def sequence(self) -> int:
        """The sequence number of the charge in the ledger."""
        return self.entry.sequence


class PricedRequest(NamedTuple):
    """A request with its privacy cost, its facts in canonical form, and its hash."""

    request: ChargeRequest
    key: tuple[str, str]
    cost: PrivacyCost
    facts: str
    digest: bytes


class CapRefusal(NamedTuple):
    """The cap that would be exceeded, its total, the cost, and all caps with their totals."""

    cap: Cap
    spent: PrivacyCost
    cost: PrivacyCost
    caps: list[Spent]


class ChargeCall(PendingCall):
    """Charge all requests of one analyst, or none."""

    __slots__ = ("keys", "outcome", "refusal", "requests")

    def __init__(self, requests: Sequence[ChargeRequest]) -> None:
        super().__init__()
        self.requests = [_price(request) for request in requests]
        self.keys = [priced.key for priced in self.requests]
        if len(requests) != 1 and len({request.dataset for request in requests}) != len(requests):
            # two requests on one dataset share totals and would have to be decided together
            raise ParameterError("HB123", "A joint charge names a dataset twice.", "Charge the requests one by one.")
        self.reset()

    def reset(self) -> None:
        """Discard the outcome."""
        super().reset()
        self.outcome: list[Charge] | None = None
        self.refusal: CapRefusal | None = None


class RecordCall(PendingCall):
    """Record the release of a charge."""

    __slots__ = ("body", "charge", "keys", "outcome")

    def __init__(self, charge: Charge, body: bytes) -> None:
        super().__init__()
        self.charge = charge
        self.keys = [(charge.entry.analyst, charge.entry.key)]
        self.body = body
        self.reset()

    def reset(self) -> None:
        """Discard the outcome."""
        super().reset()
        self.outcome = b""


class LookupCall(PendingCall):
    """Look up the charge of a key, in order with all other calls."""

    __slots__ = ("keys", "outcome")

    def __init__(self, analyst: str, key: str) -> None:
        super().__init__()
        self.keys = [(analyst, key)]
        self.reset()

    def reset(self) -> None:
        """Discard the outcome."""
        super().reset()
        self.outcome: Charge | None = None


class NoteCall(PendingCall):
    """Add an entry without a request, a policy or a forfeit, with the costs that it adds to the totals.

    `policy` applies to all calls from here on. A forfeit sets the ledger's clock, unless it only closes a block.
    """

    __slots__ = ("facts", "keys", "kind", "losses", "policy", "sets_clock")

    def __init__(
        self,
        kind: Kind,
        facts: str,
        losses: Mapping[str, PrivacyCost] | None = None,
        *,
        policy: Policy | None = None,
        sets_clock: bool = True,
    ) -> None:
        super().__init__()
        self.sets_clock = sets_clock
        self.keys: list[tuple[str, str]] = []
        self.kind: Kind = kind
        self.facts = facts
        self.losses = losses or {}
        self.policy = policy


class Remark(NamedTuple):
    """The analyst, dataset and charge (0 for none) that an entry is about."""

    analyst: str
    dataset: str
    charge: int


class RemarkCall(PendingCall):
    """Add entries that charge nothing: failed runs and their review, or decisions on answers and their publication."""

    __slots__ = ("facts", "keys", "kind", "remarks")

    def __init__(self, kind: Kind, remarks: Sequence[Remark], facts: str = "{}") -> None:
        super().__init__()
        self.keys: list[tuple[str, str]] = []
        self.kind: Kind = kind
        self.remarks = remarks
        self.facts = facts


AnyCall = ChargeCall | RecordCall | LookupCall | NoteCall | RemarkCall


@lru_cache(maxsize=65536)
def _terms(event: Event, blocks: BlockSet | None) -> tuple[PrivacyCost, str]:
    """Give the cost and the canonical facts of an event on some blocks, cached together."""
    return privacy_cost(event), facts_text(event, blocks)


def _price(request: ChargeRequest) -> PricedRequest:
    """Check a request and compute its cost and hash."""
    analyst, dataset, version, event, query, key, blocks = request
    loss, facts = _terms(event, blocks)
    if not 0 < len(key) <= _KEY_LENGTH or len(query) > _QUERY_LENGTH:
        raise ParameterError(
            "HB123",
            f"A key must have 1 to {_KEY_LENGTH} characters, and a query at most {_QUERY_LENGTH}.",
            "Shorten the key or the query.",
        )
    if "\0" in query or "\0" in key or "\0" in version:
        raise ParameterError("HB123", "The request contains a NUL character.", "Remove it.")
    try:
        (version + key).encode()
        return PricedRequest(request, (analyst, key), loss, facts, request_hash(dataset, facts, query))
    except UnicodeEncodeError as error:
        raise ParameterError("HB123", "The request is not valid Unicode text.", "Send UTF-8.") from error
