"""Request and response bodies for owners and auditors.

Tested in tests/server/test_administration.py.
"""

from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from hubbub.accounting.filters import Budget
from hubbub.core import numbers
from hubbub.server.api.schemas import Exact, Name, Number, ProblemDetails, ReleaseForm, RequestModel
from hubbub.server.state import Role


class CapBody(RequestModel):
    """A budget cap. If `delta` is omitted, the δ of the dataset applies."""

    epsilon: Number
    delta: Number | None = Field(None, examples=[None])

    def budget(self) -> Budget:
        """Return the cap as exact numbers."""
        pure = self.delta is None or numbers.exact(self.delta, "delta") == 0
        return Budget(numbers.epsilon(self.epsilon), Fraction(0) if pure else numbers.delta(self.delta or 0))


class AnalystBody(RequestModel):
    """An analyst with a cap for each dataset."""

    name: Name
    caps: dict[Name, CapBody] = Field(default_factory=dict, max_length=1000, examples=[{"health": {"epsilon": "1"}}])


class GroupBody(RequestModel):
    """A group of analysts and the caps that they share."""

    members: list[Name] = Field(min_length=1, max_length=10_000, examples=[["ana"]])
    caps: dict[Name, CapBody] = Field(min_length=1, max_length=1000, examples=[{"health": {"epsilon": "2"}}])


class TokenBody(RequestModel):
    """Holder, role, and lifetime in days of a new token."""

    name: Name
    role: Role
    days: int = Field(30, ge=1, le=3650)
    streams: list[Annotated[str, Field(pattern=r"^[\w.@+-]{1,100}/[a-z0-9][a-z0-9_-]{0,62}$")]] = Field(
        default_factory=list,
        max_length=100,
        examples=[["ana/visits"]],
        description="For a feeder token only: the streams it may feed, each as analyst/stream.",
    )


class ConfigBody(RequestModel):
    """The text of a hubbub.yaml."""

    text: str = Field(max_length=1_000_000, examples=["version: 1\n"])


class RequestBody(RequestModel):
    """A request for more budget."""

    dataset: Name = Field(examples=["health"])
    epsilon: Number
    reason: str = Field(min_length=1, max_length=2000, examples=["The second half of the study."])


class ReviewBody(RequestModel):
    """The analyst and the dataset whose failed queries were reviewed."""

    analyst: Name = Field(examples=["ana"])
    dataset: Name = Field(examples=["health"])


class DecisionBody(RequestModel):
    """A note to the analyst."""

    note: str = Field("", max_length=2000, examples=["Until the end of the year."])


class GrantBody(DecisionBody):
    """A note to the analyst, and how much is approved if it is less than was requested."""

    epsilon: Number | None = Field(None, description="Less than was requested; by default all of it.", examples=[None])


class EffectForm(BaseModel):
    """What a request would buy, and what it would do to the promise, in sentences."""

    effect: list[str]


class CapLimits(BaseModel):
    """The limits of a cap."""

    epsilon: Exact
    delta: Exact


class AnalystForm(BaseModel):
    """An analyst and their individual caps."""

    name: str
    caps: dict[str, CapLimits]


class AnalystList(BaseModel):
    """All analysts."""

    analysts: list[AnalystForm]


class GroupForm(BaseModel):
    """A group."""

    name: str
    members: list[str]
    caps: dict[str, CapLimits]


class GroupList(BaseModel):
    """All groups."""

    groups: list[GroupForm]


class TokenForm(BaseModel):
    """A token, without its secret. `used` is the day of its last use."""

    id: str
    name: str
    role: Role
    created: int
    expires: int
    revoked: int | None
    used: str | None


class TokenList(BaseModel):
    """All tokens."""

    tokens: list[TokenForm]


class IssuedTokenForm(TokenForm):
    """A new token. Its text is shown only once."""

    token: str


class ConfigForm(BaseModel):
    """The current hubbub.yaml."""

    text: str
    hash: str


class CheckForm(BaseModel):
    """The check of a new hubbub.yaml: problems, diff, guarantees, and warnings."""

    problems: list[ProblemDetails]
    diff: str
    promise: list[dict[str, Any]]
    concerns: list[str]


class ConfigHash(BaseModel):
    """The hash of the current hubbub.yaml."""

    hash: str


class RequestForm(BaseModel):
    """A request for more budget and the decision on it."""

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


class RequestList(BaseModel):
    """Budget requests, newest first. Pass `next` as `before` to get the next page."""

    requests: list[RequestForm]
    next: int | None


class AnswerDecisionBody(RequestModel):
    """A decision on an answer. To decline needs a reason, which the analyst reads."""

    approve: bool = Field(examples=[True])
    reason: str = Field("", max_length=10_000, examples=["Outside of the agreed purpose."])


class DecisionForm(BaseModel):
    """What one person decided; `time` is in microseconds since 1970."""

    approved: bool
    by: str
    reason: str
    time: int


class AnswerReview(BaseModel):
    """An answer that needs or needed review: `people` different people must approve it."""

    number: int
    analyst: str
    datasets: list[str]
    query: str
    people: int
    state: Literal["waiting", "approved", "declined"]
    decisions: list[DecisionForm]


class AnswerReviewList(BaseModel):
    """Answers that need or needed review, newest first. Pass `next` as `before` to get the next page."""

    reviews: list[AnswerReview]
    next: int | None


class ReviewedAnswer(BaseModel):
    """An answer with its review; `release` is null if the query has no answer."""

    review: AnswerReview
    release: ReleaseForm | None


class PublicationBody(RequestModel):
    """A release to publish, with the title and the introduction of its page."""

    release: int = Field(ge=1, le=2**62, examples=[1])
    title: str = Field(max_length=1000, examples=["Visits by region"])
    notes: str = Field("", max_length=10_000, examples=["Contact: data@example.org"])


class PublicationForm(BaseModel):
    """What was done to a public page: the last action on it says whether it is public."""

    id: int
    page: str
    path: str
    release: int
    title: str
    notes: str
    action: Literal["requested", "declined", "published", "withdrawn"]
    who: str
    at: int
    text: str = Field(description="Hash of the title and introduction, which a decision names.")


class PublicationDecisionBody(RequestModel):
    """A decision on a publication that waits for approval."""

    approve: bool = Field(examples=[True])
    text: str = Field(
        min_length=64,
        max_length=64,
        description="The `text` of the publication that was read: a decision is about no other.",
        examples=["0" * 64],
    )
    reason: str = Field("", max_length=10_000, description="Required to decline; recorded in the ledger.")


class WaitingPublications(BaseModel):
    """Publications that wait for approval, the longest wait first."""

    publications: list[PublicationForm]


class PublicationList(BaseModel):
    """Actions on public pages, newest first. Pass `next` as `before` to get the next page."""

    publications: list[PublicationForm]
    next: int | None


class LedgerEntries(BaseModel):
    """Ledger entries, newest first. Pass `next` as `before` to get the next page."""

    entries: list[dict[str, Any]]
    next: int | None


class ReviewForm(BaseModel):
    """The charges whose failures were reviewed."""

    charges: list[int]


class VerificationForm(BaseModel):
    """The result of verifying the ledger."""

    sound: bool
    entries: int
    charges: int
    releases: int
    caps: int
    head: dict[str, int | str]
    anchor: int | None
    problems: list[dict[str, str]]
    report: str
