"""What the ledger is asked to do: charge a request, keep a release, note a policy, a forfeit, a failure or a review."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from hubbub.accounting.chain import Entry, Kind, facts_text, request_hash
from hubbub.accounting.cost import PrivacyCost, privacy_cost
from hubbub.accounting.group_commit import Call
from hubbub.accounting.policy import Cap, Policy
from hubbub.accounting.refusal import Spent
from hubbub.core.events import Event
from hubbub.errors import ParameterError

_KEY_LENGTH = 200
_QUERY_LENGTH = 1_000_000


class Request(NamedTuple):
    """What an analyst asks to spend on: the mechanism's facts and the question in canonical text, under a key.

    A key belongs to one analyst: the same key of another analyst is another key. `version` names the state of the data.
    """

    analyst: str
    dataset: str
    version: str
    event: Event
    query: str
    key: str


class Charge(NamedTuple):
    """A durable charge; `release` is what it paid for, where that is already recorded."""

    entry: Entry
    release: bytes | None = None
    replayed: bool = False

    @property
    def sequence(self) -> int:
        """The charge's number in the ledger."""
        return self.entry.sequence


class Asked(NamedTuple):
    """A request with what it costs, how its facts are written, and its hash."""

    request: Request
    key: tuple[str, str]
    cost: PrivacyCost
    facts: str
    digest: bytes


class Refusal(NamedTuple):
    """The cap that refuses, its total, the price that it does not admit, and all caps with their totals."""

    cap: Cap
    spent: PrivacyCost
    cost: PrivacyCost
    caps: list[Spent]


class ChargeCall(Call):
    """Requests of one analyst on their way to a charge each, or to one refusal of all."""

    __slots__ = ("asked", "keys", "outcome", "refusal")

    def __init__(self, requests: Sequence[Request]) -> None:
        super().__init__()
        self.asked = [_asked(request) for request in requests]
        self.keys = [each.key for each in self.asked]
        if len(self.asked) != 1 and len({request.dataset for request in requests}) != len(requests):
            # two on one dataset would have to be weighed together
            raise ParameterError("HB123", "a joint charge names each dataset once.", "Charge them one by one.")
        self.reset()

    def reset(self) -> None:
        """Forget what was decided."""
        super().reset()
        self.outcome: list[Charge] | None = None
        self.refusal: Refusal | None = None


class RecordCall(Call):
    """A release on its way to be kept."""

    __slots__ = ("body", "charge", "keys", "outcome")

    def __init__(self, charge: Charge, body: bytes) -> None:
        super().__init__()
        self.charge = charge
        self.keys = [(charge.entry.analyst, charge.entry.key)]
        self.body = body
        self.reset()

    def reset(self) -> None:
        """Forget what was decided."""
        super().reset()
        self.outcome = b""


class LookupCall(Call):
    """A look at the charge that a key belongs to, in the order of all other calls."""

    __slots__ = ("keys", "outcome")

    def __init__(self, analyst: str, key: str) -> None:
        super().__init__()
        self.keys = [(analyst, key)]
        self.reset()

    def reset(self) -> None:
        """Forget what was found."""
        super().reset()
        self.outcome: Charge | None = None


class NoteCall(Call):
    """A policy or a forfeit: an entry without a request, and what it adds to the totals.

    `policy` is one that calls are decided under from here on.
    """

    __slots__ = ("facts", "keys", "kind", "losses", "policy")

    def __init__(
        self, kind: Kind, facts: str, losses: Mapping[str, PrivacyCost] | None = None, *, policy: Policy | None = None
    ) -> None:
        super().__init__()
        self.keys: list[tuple[str, str]] = []
        self.kind: Kind = kind
        self.facts = facts
        self.losses = losses or {}
        self.policy = policy


class Remark(NamedTuple):
    """Whom and what an entry is about, and which charge (0 for none)."""

    analyst: str
    dataset: str
    charge: int


class Remarking(Call):
    """Entries about an analyst and a dataset that spend nothing: a run that failed, or the owner's look at such."""

    __slots__ = ("facts", "keys", "kind", "remarks")

    def __init__(self, kind: Kind, remarks: Sequence[Remark], facts: str = "{}") -> None:
        super().__init__()
        self.keys: list[tuple[str, str]] = []
        self.kind: Kind = kind
        self.remarks = remarks
        self.facts = facts


AnyCall = ChargeCall | RecordCall | LookupCall | NoteCall | Remarking


@lru_cache(maxsize=65536)
def _terms(event: Event) -> tuple[PrivacyCost, str]:
    """Give what an event costs and how it is written, by one look into one table."""
    return privacy_cost(event), facts_text(event)


def _asked(request: Request) -> Asked:
    """Check what the analyst wrote, and hash what was asked for."""
    analyst, dataset, version, event, query, key = request
    loss, facts = _terms(event)
    if not 0 < len(key) <= _KEY_LENGTH or len(query) > _QUERY_LENGTH:
        raise ParameterError(
            "HB123", f"a key has 1 to {_KEY_LENGTH} characters, and a query at most {_QUERY_LENGTH}.", "Shorten it."
        )
    if "\0" in query or "\0" in key or "\0" in version:
        raise ParameterError("HB123", "the request contains a NUL character.", "Leave it out.")
    try:
        (version + key).encode()
        return Asked(request, (analyst, key), loss, facts, request_hash(dataset, facts, query))
    except UnicodeEncodeError as error:
        raise ParameterError("HB123", "the request is not text that can be written down.", "Send UTF-8.") from error
