"""The arguments of the tools: strict, described for a model, and turned into options of queries.

Tested in tests/mcp/test_tools.py.
"""

import json
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field

from hubbub.answers import options
from hubbub.answers.options import Options
from hubbub.core.call import MAX_LENGTH, AnalysisCall

Number = Annotated[str | int | float, Field(description='A number; a text such as "0.1" or "1/3" is exact.')]
_NAME = Field(min_length=1, max_length=200)


class ToolArguments(BaseModel):
    """The arguments of a tool, without unknown ones and without conversion of types."""

    model_config = ConfigDict(extra="forbid", strict=True)


class NoArguments(ToolArguments):
    """A tool without arguments."""


class DatasetArguments(ToolArguments):
    """The name of a dataset."""

    dataset: str = _NAME


class QueryArguments(ToolArguments):
    """A query with its privacy cost or its target margin of error."""

    sql: str = Field(min_length=1, max_length=100_000, description="One SELECT in DuckDB's SQL, with aggregates.")
    epsilon: Number | None = Field(None, description="Privacy cost, such as 0.1. Not needed for public datasets.")
    within: Number | None = Field(None, description='Target margin of error instead: 50, or "5%".')
    delta: Number | None = Field(None, description="Maximum δ; 0 requires pure differential privacy.")
    parameters: list[str | int | float | bool] = Field(
        default_factory=list, max_length=100, description="Values of $1, $2, …"
    )
    groups: int | None = Field(None, description="Count each privacy unit in at most this many groups.")
    rows: int | None = Field(None, description="Count at most this many rows of a unit in each group.")
    dialect: str = Field("duckdb", max_length=20, description="SQL dialect of the query.")
    intervals: str = Field("each", max_length=10, description="'each' interval holds with 95%, or all ('joint').")

    def text(self) -> str:
        """Return the query."""
        return self.sql

    def options(self) -> Options:
        """Return the options of the query."""
        given = self.model_dump(exclude={"sql", "key"}, exclude_none=True)
        return options.from_json(given)


class TryArguments(QueryArguments):
    """A query to try on made-up rows."""

    sql: str = Field(min_length=1, max_length=100_000, description="A query as for `query`, or a CALL of an analysis.")


class PaidQueryArguments(QueryArguments):
    """A query to answer."""

    key: str | None = Field(None, min_length=1, max_length=100, description="A new key draws, and charges, again.")


class CallArguments(ToolArguments):
    """A call of an analysis."""

    name: str = Field(pattern=r"^[a-z_]{1,40}$", description="The analysis, such as kmeans, synthetic or tabulate.")
    arguments: dict[str, Any] = Field(description='Its arguments, such as {"table": "visits", "columns": ["age"]}.')
    epsilon: Number = Field(description="Privacy cost, such as 0.5.")
    delta: Number | None = Field(None, description="Maximum δ; 0 requires pure differential privacy.")
    key: str | None = Field(None, min_length=1, max_length=100, description="A new key draws, and charges, again.")

    def text(self) -> str:
        """Return the call as text."""
        if len(json.dumps(self.arguments)) > MAX_LENGTH:
            return "CALL " + " " * MAX_LENGTH  # the parser says what is too long
        return AnalysisCall(self.name, self.arguments).text()

    def options(self) -> Options:
        """Return the options of the call."""
        given = {"epsilon": self.epsilon} | ({} if self.delta is None else {"delta": self.delta})
        return cast("Options", given)


class ReleasesArguments(ToolArguments):
    """Which past charges to list, or the number of one answer to read again."""

    limit: int = Field(20, ge=1, le=100, description="Maximum number of charges to list.")
    number: int | None = Field(None, ge=1, le=2**62, description="Read the answer of this charge again; free.")


class ExplainArguments(ToolArguments):
    """Privacy parameters to explain, or a query whose noise to explain."""

    epsilon: Number | None = Field(None, description="The ε to explain, or the cost of the query.")
    delta: Number | None = Field(None, description="The δ to explain.")
    sql: str | None = Field(None, max_length=100_000, description="Explain how this query would be answered; free.")


class VerifyArguments(ToolArguments):
    """The number of the charge whose receipt to verify."""

    number: int = Field(ge=1, le=2**62)
