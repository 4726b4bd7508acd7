"""What travels between owner, auditor and service."""

from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from hubbub.accounting.filters import Budget
from hubbub.core import numbers
from hubbub.server.api.schemas import Exact, Given, Name, Number, Problem

Role = Literal["owner", "analyst", "auditor", "feeder"]


class Cap(Given):
    """How much may be spent; without a δ, that of the dataset holds."""

    epsilon: Number
    delta: Number | None = Field(None, examples=[None])

    def budget(self) -> Budget:
        """Take it exactly."""
        none = self.delta is None or numbers.exact(self.delta, "delta") == 0
        return Budget(numbers.epsilon(self.epsilon), Fraction(0) if none else numbers.delta(self.delta or 0))


class NewAnalyst(Given):
    """An analyst with a cap on each dataset."""

    name: Name
    caps: dict[Name, Cap] = Field(default_factory=dict, max_length=1000, examples=[{"health": {"epsilon": "1"}}])


class GroupTerms(Given):
    """A group of analysts with caps that they share."""

    members: list[Name] = Field(min_length=1, max_length=10_000, examples=[["ana"]])
    caps: dict[Name, Cap] = Field(min_length=1, max_length=1000, examples=[{"health": {"epsilon": "2"}}])


class NewToken(Given):
    """For whom a token shall be, and for how long."""

    name: Name
    role: Role
    days: int = Field(30, ge=1, le=3650)
    streams: list[Annotated[str, Field(pattern=r"^[\w.@+-]{1,100}/[a-z0-9][a-z0-9_-]{0,62}$")]] = Field(
        default_factory=list,
        max_length=100,
        examples=[["ana/visits"]],
        description="Of a feeder's token: the streams that it may feed, each as analyst/stream.",
    )


class Text(Given):
    """A hubbub.yaml."""

    text: str = Field(max_length=1_000_000, examples=["version: 1\n"])


class More(Given):
    """A request for more budget."""

    dataset: Name = Field(examples=["health"])
    epsilon: Number
    reason: str = Field(min_length=1, max_length=2000, examples=["The second half of the study."])


class Review(Given):
    """Whose failed queries were looked at, on which dataset."""

    analyst: Name = Field(examples=["ana"])
    dataset: Name = Field(examples=["health"])


class Verdict(Given):
    """A word to who asked."""

    note: str = Field("", max_length=2000, examples=["Until the end of the year."])


class CapTerms(BaseModel):
    """A cap."""

    epsilon: Exact
    delta: Exact


class AnalystForm(BaseModel):
    """An analyst's own caps."""

    name: str
    caps: dict[str, CapTerms]


class Analysts(BaseModel):
    """All analysts."""

    analysts: list[AnalystForm]


class GroupForm(BaseModel):
    """A group."""

    name: str
    members: list[str]
    caps: dict[str, CapTerms]


class Groups(BaseModel):
    """All groups."""

    groups: list[GroupForm]


class TokenForm(BaseModel):
    """What is kept of a token."""

    id: str
    name: str
    role: Role
    created: int
    expires: int
    revoked: int | None
    used: str | None


class Tokens(BaseModel):
    """All tokens."""

    tokens: list[TokenForm]


class Issued(TokenForm):
    """A new token, with the text that is shown this once."""

    token: str


class ConfigForm(BaseModel):
    """hubbub.yaml as it is."""

    text: str
    hash: str


class CheckForm(BaseModel):
    """What a new hubbub.yaml would be."""

    problems: list[Problem]
    diff: str
    promise: list[dict[str, Any]]
    concerns: list[str]


class Applied(BaseModel):
    """The hash of the hubbub.yaml in force."""

    hash: str


class RequestForm(BaseModel):
    """A request for more budget, and what became of it."""

    id: int
    analyst: str
    dataset: str
    epsilon: Exact
    reason: str
    created: int
    state: Literal["open", "granted", "refused"]
    decided: int | None
    decider: str | None
    note: str | None


class Requests(BaseModel):
    """Requests, the newest first."""

    requests: list[RequestForm]
    next: int | None


class History(BaseModel):
    """Entries of the ledger, the newest first."""

    entries: list[dict[str, Any]]
    next: int | None


class Reviewed(BaseModel):
    """The charges whose failures were looked at."""

    charges: list[int]


class Verified(BaseModel):
    """What came of deriving everything in the ledger again."""

    sound: bool
    entries: int
    charges: int
    releases: int
    caps: int
    head: dict[str, int | str]
    anchor: int | None
    problems: list[dict[str, str]]
    report: str
