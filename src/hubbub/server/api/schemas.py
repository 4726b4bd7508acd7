"""What travels: the bodies of requests, which are checked, and those of answers, which are documented."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from hubbub.answers import options
from hubbub.curator.question import Question

Number = Annotated[
    int | float | str,
    Field(description="A number; exact where it is text, such as 0.1 or 1/3.", examples=["0.1"]),
]
Exact = Annotated[str, Field(description="An exact number.", examples=["1/10"])]
Name = Annotated[str, Field(pattern=r"^[\w.@+-]{1,100}$", examples=["ana"])]
_SQL = "SELECT coinsurance, COUNT(*) AS person_years FROM health GROUP BY coinsurance"


class Given(BaseModel):
    """A body that is taken as it is written, or refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Ask(Given):
    """A question, with what it may cost (`epsilon`) or how exact its answer shall be (`within`)."""

    sql: str = Field(max_length=100_000, examples=[_SQL])
    epsilon: Number | None = Field(None, description="What to spend.", examples=["0.1"])
    within: Number | None = Field(None, description='The ± wanted instead, such as 50 or "5%".', examples=[None])
    delta: Number | None = Field(None, description="The δ that may be used; 0 insists on none.", examples=[None])
    parameters: list[bool | int | float | str | dict[str, str]] = Field(
        default_factory=list,
        max_length=1000,
        examples=[[]],
        description='The values of $1, $2, …; {"date": "2020-01-31"} for what JSON has no word for.',
    )
    groups: int | None = Field(None, description="Let each unit count in at most so many groups.", examples=[1])
    rows: int | None = Field(None, description="Let at most so many rows of a unit count in each group.", examples=[1])
    weights: dict[str, Number] | None = Field(None, description="How much more exact one output is wanted.")
    raw: bool = Field(default=False, description="Leave estimates as they fall, negative counts too.")
    dialect: str = Field("duckdb", max_length=20, description="The dialect that the question is written in.")

    def question(self) -> Question:
        """Make a question of it."""
        said = self.model_dump(exclude={"sql", "key"}, exclude_none=True)
        return Question(self.sql, **options.read(said))


class Spend(Ask):
    """A question to be paid for."""

    key: str | None = Field(
        None, min_length=1, max_length=100, description="Names one answer: a new key draws, and charges, anew."
    )


class Problem(BaseModel):
    """Why not, and what to do about it (RFC 9457)."""

    type: str = Field(examples=["urn:hubbub:HB201"])
    title: str
    status: int
    detail: str
    code: str = Field(pattern=r"^HB\d{3}$")
    remedy: str
    position: list[int] | None = Field(description="Line and column of the words concerned.")
    instance: str = Field(description="The number of the request, as in the log.")


class Me(BaseModel):
    """Who asks."""

    name: str
    role: Literal["owner", "analyst", "auditor"]
    expires: int


class Datasets(BaseModel):
    """The datasets that may be asked about."""

    datasets: list[str]


class Dataset(BaseModel):
    """What is declared about a dataset, and whom it protects."""

    model_config = ConfigDict(extra="allow")

    name: str
    protected: str
    neighbors: str
    disabled: list[dict[str, str]]


class ExpectedForm(BaseModel):
    """The error to expect in one output."""

    name: str
    plus_minus: float
    rows: int | None
    relative: float
    unit: Literal["value", "rank"]


class ScalingForm(BaseModel):
    """The errors to expect at another ε."""

    epsilon: Exact
    expected: list[ExpectedForm]


class EstimateForm(BaseModel):
    """What a question would cost, and how exact its answer would be."""

    datasets: list[str]
    epsilon: Exact
    delta: Exact
    noise: str
    cells: int
    admitted: bool
    largest_epsilon: Exact
    expected: list[ExpectedForm]
    scaling: list[ScalingForm]
    derivation: list[str]
    sql: list[str]


class Explanation(BaseModel):
    """How a question is answered."""

    datasets: list[str]
    epsilon: Exact
    delta: Exact
    noise: str
    cells: int
    derivation: list[str]
    sql: list[str]
    split: list[ExpectedForm]


class ColumnForm(BaseModel):
    """One column of an answer, with the ends of its 95% intervals."""

    name: str
    kind: str
    values: list[Any]
    low: list[float | None] | None
    high: list[float | None] | None


class AnswerForm(BaseModel):
    """An answer, column by column."""

    columns: list[ColumnForm]
    ratio: list[float | None]
    model: dict[str, Any] | None = Field(default=None, description="Of an analysis: what is published beside columns.")


class ReleaseForm(BaseModel):
    """An answer with its receipt, its price and what is left."""

    answer: AnswerForm
    receipt: dict[str, Any]
    epsilon: Exact
    delta: Exact
    left: Exact | None
    replayed: bool


class ProgressForm(BaseModel):
    """How far an analysis is."""

    done: float = Field(ge=0, le=1)
    what: str


class JobForm(BaseModel):
    """A question in line."""

    id: str
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    progress: ProgressForm | None = None
    release: ReleaseForm | None = None
    problem: Problem | None = None


class PastForm(BaseModel):
    """One charge of the past."""

    id: int
    time: str
    analyst: str
    dataset: str
    query: str
    epsilon: Exact | None
    delta: Exact
    released: bool


class Releases(BaseModel):
    """Charges, the newest first; `next` goes into `before` for the next page."""

    releases: list[PastForm]
    next: int | None


class CapForm(BaseModel):
    """One cap, with what is spent and left."""

    scope: Literal["query", "analyst", "group", "dataset"]
    name: str
    per: Literal["day", "month"] | None
    epsilon: Exact
    delta: Exact
    spent: Exact | None
    left: Exact


class OverviewForm(BaseModel):
    """What one analyst has on one dataset."""

    analyst: str
    dataset: str
    largest_epsilon: Exact
    last_query: str | None
    more_like_last: int | None
    caps: list[CapForm]


class Budgets(BaseModel):
    """What is spent and left."""

    budgets: list[OverviewForm]
