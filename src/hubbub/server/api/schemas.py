"""Request bodies, which are validated, and response bodies, which are documented.

Tested in tests/server/test_api.py.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from hubbub.answers import options
from hubbub.answers.batch import batch_text
from hubbub.curator.question import Question

Number = Annotated[
    int | float | str,
    Field(description='A number. A string such as "0.1" or "1/3" is read exactly.', examples=["0.1"]),
]
Exact = Annotated[str, Field(description="An exact number as text.", examples=["1/10"])]
Name = Annotated[str, Field(pattern=r"^[\w.@+-]{1,100}$", examples=["ana"])]
_SQL = "SELECT coinsurance, COUNT(*) AS person_years FROM health GROUP BY coinsurance"


class RequestModel(BaseModel):
    """A request body without unknown fields and without type conversion."""

    model_config = ConfigDict(extra="forbid", strict=True)


class EstimateBody(RequestModel):
    """A query with either a privacy cost (`epsilon`) or a target margin of error (`within`)."""

    sql: str = Field(max_length=100_000, examples=[_SQL])
    epsilon: Number | None = Field(None, description="Privacy cost.", examples=["0.1"])
    within: Number | None = Field(
        None,
        description='Target margin of error (95%) instead of ε: 50, in the units of the results; or "5%", of a group of'
        " 1,000 rows for counts, sums and ranks, and of the scale that the column bounds give for other aggregates.",
        examples=[None],
    )
    delta: Number | None = Field(None, description="Maximum δ of the query; 0 requires pure DP.", examples=[None])
    parameters: list[bool | int | float | str | dict[str, str]] = Field(
        default_factory=list,
        max_length=1000,
        examples=[[]],
        description='Values of $1, $2, …; write types that JSON lacks as {"date": "2020-01-31"}.',
    )
    groups: int | None = Field(None, description="Maximum number of groups per privacy unit.", examples=[1])
    rows: int | None = Field(None, description="Maximum number of rows per privacy unit and group.", examples=[1])
    weights: dict[str, Number] | None = Field(
        None, description="Relative accuracy of each output, for splitting the budget."
    )
    raw: bool = Field(default=False, description="Return unadjusted estimates, including negative counts.")
    dialect: str = Field("duckdb", max_length=20, description="SQL dialect of the query.")
    intervals: Literal["each", "joint"] = Field(
        "each", description="Whether each interval holds with 95%, or all intervals of the result at once."
    )

    noise: Literal["laplace", "gaussian"] | None = Field(
        None, description="The kind of noise; by default the one with the smaller error, or of less cost for `within`."
    )
    combine: bool = Field(
        default=False, description="Pay less where earlier releases and a new one together are as exact as asked."
    )

    def question(self) -> Question:
        """Return the query to plan or run."""
        given = self.model_dump(exclude={"sql", "key", "free"}, exclude_none=True)
        return Question(self.sql, **options.from_json(given))


class QueryBody(EstimateBody):
    """A query to run and charge."""

    key: str | None = Field(
        None,
        min_length=1,
        max_length=100,
        description="Names one answer. A new key samples fresh noise and is charged again.",
    )
    free: bool = Field(
        default=False,
        description="Answer only if nothing has to be charged: an answer that is recorded, that earlier releases"
        " determine as exactly as the price would buy (without a price: however exactly), or of public tables."
        " Anything else is refused with HB167.",
    )


class BatchBody(RequestModel):
    """Queries that are planned together, with one privacy cost."""

    queries: list[Annotated[str, Field(max_length=20_000)]] = Field(min_length=1, max_length=1000, examples=[[_SQL]])
    epsilon: Number = Field(description="Privacy cost of all queries together.", examples=["0.5"])
    delta: Number | None = Field(None, description="Maximum δ of the batch; 0 requires pure DP.", examples=[None])
    key: str | None = Field(None, min_length=1, max_length=100, description="Names one answer, as for a query.")

    def question(self) -> Question:
        """Return the batch to plan or run."""
        return Question(batch_text(self.queries), epsilon=self.epsilon, delta=self.delta)


class ProblemDetails(BaseModel):
    """An error with its remedy (RFC 9457 problem details)."""

    type: str = Field(examples=["urn:hubbub:HB201"])
    title: str
    status: int
    detail: str
    code: str = Field(pattern=r"^HB\d{3}$")
    remedy: str
    position: list[int] | None = Field(description="Line and column in the query.")
    instance: str = Field(description="Request id, as in the server log.")


class PrincipalForm(BaseModel):
    """The caller. `expires` is in seconds since 1970."""

    name: str
    role: Literal["owner", "analyst", "auditor", "steward"]
    expires: int


class DatasetList(BaseModel):
    """The datasets visible to the caller."""

    datasets: list[str]


class SandboxDataset(BaseModel):
    """The declarations of a dataset that has a stand-in."""

    model_config = ConfigDict(extra="allow")

    name: str


class DatasetForm(BaseModel):
    """The declarations of a dataset and its privacy unit."""

    model_config = ConfigDict(extra="allow")

    name: str
    protected: str
    neighbors: str
    rows: int | None = Field(description="The number of rows, where it is public.")
    disabled: list[dict[str, str]]
    profile: dict[str, Any] | None = Field(
        default=None, description="The newest published profile: its charge, data version, and noisy histograms."
    )


class ShareForm(BaseModel):
    """An estimated share between 0 and 1, with its 95% confidence interval."""

    value: float
    low: float
    high: float


class ClampForm(BaseModel):
    """A column that is clamped to its bounds, and the share of its values outside, if it is known."""

    column: str
    low: str
    high: str
    share: ShareForm | None = None


class LeftOutForm(BaseModel):
    """What the bounds of a query leave out, if it is known; `text` says it in words."""

    model_config = ConfigDict(extra="allow")

    dataset: str
    unit: str | None = Field(default=None, description="Privacy ID column; absent if each row is a unit.")
    groups: int | None = Field(default=None, description="Maximum number of groups of a unit; absent: all.")
    rows: int | None = Field(default=None, description="Maximum number of rows of a unit per group; absent: all.")
    maximum: int | None = Field(default=None, description="Public maximum, if the query found its bound itself.")
    clamped: list[ClampForm] = Field(default_factory=list)
    unlisted: list[str] = Field(default_factory=list, description="Columns whose undeclared values are read as NULL.")
    ungrouped: list[str] = Field(default_factory=list, description="Keys whose undeclared values are in no group.")
    null_keys: list[str] = Field(default_factory=list, description="Columns whose NULL is in no group.")
    fills_null: bool = Field(default=False, description="Whether LEAST or GREATEST may take a constant for NULL.")
    share: ShareForm | None = Field(default=None, description="Share of the rows that is left out; absent: unknown.")
    evidence: dict[str, Any] | None = Field(default=None, description="The profile that the share comes from.")
    text: str


class GroupThresholdForm(BaseModel):
    """About how many privacy units a group needs to be shown; `text` and `warning` say it in words."""

    alone: int = Field(description="If they are in no other group.")
    spread: int = Field(description="If each of them is in 10 groups.")
    unit: str | None = Field(description="Privacy ID column; null if each row is a unit.")
    units: int | None = Field(description="About how many units the dataset has; null if it has no profile.")
    enough: Exact | None = Field(description="An ε at which many more groups could be shown, if hardly any can be now.")
    text: str
    warning: str


class ExpectedForm(BaseModel):
    """The expected error of one output."""

    name: str
    plus_minus: float
    rows: int | None
    relative: float
    unit: Literal["value", "rank"]
    low: float | None
    high: float | None


class FreeForm(BaseModel):
    """What earlier releases tell about a query for free."""

    releases: list[int] = Field(description="The charges that paid for them.")
    expected: list[ExpectedForm]
    enough: bool = Field(description="Whether a query at the requested price would be answered from them.")
    exact: bool = Field(description="Whether it is about the same rows; else at least as many of each unit count.")
    combined: str | None = Field(description="A lower price at which it is as exact together with a new release.")
    text: str


class ScalingForm(BaseModel):
    """The expected errors at another ε."""

    epsilon: Exact
    expected: list[ExpectedForm]


class EstimateForm(BaseModel):
    """A query's privacy cost and expected accuracy."""

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
    target: str = Field(description="What a relative margin of error was taken of; empty if none was requested.")
    group_rows: int | None = Field(description="Rows in an average group, if the dataset has a profile.")
    intervals: str = Field(description="What the margins of error state, if they hold for the whole answer at once.")
    units: int | None = Field(None, description="Number of privacy units, if it is public or has a profile.")
    choice: str = Field(description="Why another noise than that with the least ε was chosen; empty if it was not.")
    work: str = Field(description="Memory, time and parts that the engine is expected to take, if a size is declared.")
    never_equal: list[str] = Field(
        default_factory=list,
        description="Constants that a column never equals: they are not among its declared values.",
    )
    warnings: list[str] = Field(
        description="Values that are not declared, results that would be mostly noise, and groups that cannot be shown."
    )
    groups: GroupThresholdForm | None = Field(description="Set if groups are selected privately.")
    fits: int | None = Field(description="Number of such queries within budget now; null if that is not shown.")
    refusal: str = Field(description="Why the query is not within budget, and what to do; empty if it is.")
    left_out: LeftOutForm | None = None
    free: FreeForm | None = None


class ExplanationForm(BaseModel):
    """How a query would be answered."""

    datasets: list[str]
    epsilon: Exact
    delta: Exact
    noise: str
    cells: int
    derivation: list[str]
    sql: list[str]
    split: list[ExpectedForm]


class SamplingForm(BaseModel):
    """The sampling error of each value of a column at 95%, or an upper bound of it."""

    values: list[float | None]
    at_most: bool


class JointForm(BaseModel):
    """The bounds of intervals that hold for all cells of the answer at once, at 95%."""

    low: list[float | None]
    high: list[float | None]


class ColumnForm(BaseModel):
    """One column of an answer, with the bounds of its 95% confidence intervals."""

    name: str
    kind: str
    values: list[Any]
    low: list[float | None] | None
    high: list[float | None] | None
    sampling: SamplingForm | None = None
    joint: JointForm | None = None


class AnswerForm(BaseModel):
    """An answer, column by column."""

    columns: list[ColumnForm]
    ratio: list[float | None]
    model: dict[str, Any] | None = Field(default=None, description="For an analysis: results besides the columns.")


class ReleaseForm(BaseModel):
    """An answer with its receipt, its privacy cost, and the remaining budget."""

    answer: AnswerForm
    receipt: dict[str, Any]
    epsilon: Exact
    delta: Exact
    left: Exact | None
    replayed: bool
    left_out: LeftOutForm | None = None
    notes: list[str] = Field(default_factory=list, description="How many privacy units a group needed to be shown.")
    intervals: Literal["joint"] | None = Field(
        default=None, description="Set if the joint intervals were requested; `answer` has both kinds."
    )


class ProgressForm(BaseModel):
    """Progress of an analysis."""

    done: float = Field(ge=0, le=1)
    what: str


class JobForm(BaseModel):
    """A job: a query that runs in the background."""

    id: str
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    progress: ProgressForm | None = None
    release: ReleaseForm | None = None
    problem: ProblemDetails | None = None


class PastForm(BaseModel):
    """One charge. `released` says whether it has a recorded release."""

    id: int
    time: str
    analyst: str
    dataset: str
    query: str
    epsilon: Exact
    delta: Exact
    released: bool
    review: Literal["waiting", "approved", "declined"] | None = None


class ReleaseList(BaseModel):
    """Charges, newest first. Pass `next` as `before` to get the next page."""

    releases: list[PastForm]
    next: int | None


class CapForm(BaseModel):
    """One cap with its spent and remaining budget."""

    scope: Literal["query", "analyst", "share", "project", "rest", "group", "dataset"]
    name: str
    per: Literal["day", "month"] | None
    epsilon: Exact
    delta: Exact
    spent: Exact | None
    left: Exact
    composed: bool = Field(description="Whether the charges together cost something else than the sum of their ε.")
    block: str | None = Field(None, description="The block that the cap is about, if it is about one.")


class BlockForm(BaseModel):
    """The budget of one analyst on one block of a dataset."""

    name: str
    spent: Exact | None
    left: Exact = Field(description="The largest ε of one more query on this block alone.")
    more_like_last: int | None
    closed: bool


class OverviewForm(BaseModel):
    """The budget of one analyst on one dataset."""

    analyst: str
    dataset: str
    largest_epsilon: Exact
    last_query: str | None
    more_like_last: int | None
    caps: list[CapForm]
    blocks: list[BlockForm] | None = Field(None, description="The blocks of the dataset; `caps` are of the newest.")


class BudgetList(BaseModel):
    """Spent and remaining budgets."""

    budgets: list[OverviewForm]
