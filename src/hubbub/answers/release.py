"""Releases: the noisy answers of a query with their intervals, privacy cost and receipt, which are public."""

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from hubbub.answers import arrow
from hubbub.answers.cell_text import Cell, Ends, format_remaining, text, without_midnight
from hubbub.answers.columns import Column
from hubbub.answers.derived import DERIVED_NOTE, derived_note, named
from hubbub.answers.groups import GroupThreshold
from hubbub.answers.joint import independent_noises, interval_count, joint_sentence
from hubbub.answers.left_out import LeftOut
from hubbub.answers.rules import rules_note, suppressed_text
from hubbub.answers.sampling import SamplingErrors
from hubbub.answers.sandbox import is_made_up, marked_column, sandbox_note
from hubbub.answers.stored import is_packed, pack_answer, unpack_answer
from hubbub.core.numbers import brief
from hubbub.core.wire import Json, optional_fraction, optional_text
from hubbub.errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NOISE_ONLY = "they are for the privacy noise only and do not include sampling error"
INTERVALS_NOTE = "95% confidence intervals for the privacy noise only; they do not include sampling error"

_WITHOUT = (
    "This answer is computed from noisy results. Columns without an interval depend on them too, except those that"
    " depend on group keys alone."
)
_FAILED = (
    "The query over the noisy results failed or gave too many rows. The noisy results themselves are in `model`, and"
    " `SELECT … FROM release(number)` reads them for free."
)

_VALUES = "The answer and its intervals are about the query with noisy values of its subqueries: "
#: How notes begin that are about noisy results that an answer is computed from.
AFTER_NOTES = (_WITHOUT, _FAILED, _VALUES, DERIVED_NOTE)

#: Words of a query that may remove groups from an answer after they were selected.
_CUT = re.compile(r"\b(HAVING|LIMIT|OFFSET)\b")
_DATED = {"date": date.fromisoformat, "timestamp": datetime.fromisoformat}
#: Nullable types; microseconds cover the years 1 to 9999.
_PANDAS = {"boolean": "boolean", "integer": "Int64", "real": "float64", "text": "str"}
_PANDAS |= dict.fromkeys(_DATED, "datetime64[us]")


@dataclass(frozen=True, slots=True)
class Output:
    """One column of a release with the ends of its 95% intervals; group keys are exact and have none.

    sampling  the sampling error of each value, where what was released determines or bounds it
    joint     the ends of intervals that hold for all cells of the answer at once with 95%, if they are wider
    """

    name: str
    kind: str
    values: Sequence[Cell]
    low: Sequence[float | None] | None = None
    high: Sequence[float | None] | None = None
    sampling: SamplingErrors | None = None
    joint: tuple[Sequence[float | None], Sequence[float | None]] | None = None

    def entries(self) -> Any:
        """Return the values as an array where they are one, and as a list otherwise."""
        return arrow.entries(self.values)


class Remaining:
    """A field for the rest of a budget, which may be given as a function: computed when it is first read, then kept.

    The function must depend on nothing that changes, so that it does not matter when it is called.
    """

    def __get__(self, release: "Release | None", owner: type) -> Fraction | None:
        if release is None:
            return None  # the default
        value = release.__dict__["left"]
        if callable(value):
            value = release.__dict__["left"] = value()
        return cast("Fraction | None", value)

    def __set__(self, release: "Release", value: Fraction | Callable[[], Fraction | None] | None) -> None:
        release.__dict__["left"] = value


@dataclass(frozen=True)
class Release:
    """The answer to a query, with its error, its privacy cost and its receipt.

    ratio     for each row, the largest ratio of the privacy noise to the sampling error among its columns
    left      the largest ε that the analyst can still spend on one query, as of this answer
    replayed  whether this is a free repetition of an earlier answer to the same query on the same data
    model     the model that an analysis publishes in addition to its columns, as JSON values (see `hubbub.model`)
    left_out  what the bounds of the query leave out, as far as it is known now
    joint     whether the intervals of all cells hold at once with 95%, instead of each with 95% (see `jointly`)
    packed    a long answer as it is stored, with its cells in the Parquet format
    part      the analysis of one answer of a batch, or "query"; empty for a whole release
    """

    outputs: tuple[Output, ...]
    ratio: Sequence[float | None]
    epsilon: Fraction
    delta: Fraction
    receipt: Mapping[str, Any]
    left: Remaining = Remaining()
    replayed: bool = False
    model: Mapping[str, Any] = field(default_factory=dict)
    left_out: LeftOut | None = None
    joint: bool = False
    packed: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)
    part: str = ""

    @property
    def analysis(self) -> str:
        """The name of the analysis that this is the answer of; "query" for a SQL query."""
        return self.part or str(self.receipt.get("analysis") or "query")

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(output.name for output in self.outputs)

    @property
    def rows(self) -> list[tuple[Cell, ...]]:
        """The values, row by row."""
        return list(zip(*(output.values for output in self.outputs), strict=True))

    @property
    def intervals(self) -> list[tuple[Ends, ...]]:
        """The 95% intervals, row by row and column by column."""
        nothing = [None] * len(self.ratio)
        pairs = (zip(output.low or nothing, output.high or nothing, strict=True) for output in self.outputs)
        return list(zip(*pairs, strict=True))

    @property
    def intervals_note(self) -> str:
        """What the intervals state."""
        if not self.joint:
            return str(self.model.get("intervals", INTERVALS_NOTE))
        noisy = sum(output.low is not None for output in self.outputs)
        count = interval_count(self.receipt, noisy) or 1
        return f"{joint_sentence(count, independent=independent_noises(self.receipt, noisy))}; {_NOISE_ONLY}"

    def jointly(self) -> Self:
        """Return the same answer with intervals that hold for all cells at once with 95%. Free: nothing is sampled."""
        if self.joint:
            return self
        noisy = [output for output in self.outputs if output.low is not None]
        if noisy and interval_count(self.receipt, len(noisy)) != 1 and any(each.joint is None for each in noisy):
            raise ParameterError(
                "HB584",
                "This answer has no joint intervals: it was recorded by an earlier version, or its groups, bounds or"
                " values were selected when it ran.",
                "Use intervals='each', or run the query again with a new key.",
            )
        return replace(self, outputs=_exchanged(self.outputs), joint=True)

    @property
    def sandbox(self) -> str:
        """That the answer is about made-up rows, in words; empty for an answer about the data."""
        return sandbox_note(self.receipt)

    @property
    def disclosure(self) -> str:
        """What the data owner's rules for small numbers and rounding did to the answer; empty if there are none."""
        return rules_note(self)

    @property
    def notes(self) -> tuple[str, ...]:
        """How many privacy units a group needed to be shown, if the groups were selected; what has no interval."""
        groups, after = GroupThreshold.from_receipt(self.receipt), "after" in self.receipt
        cut = after or (_CUT.search(self.receipt["query"]) is not None if groups is not None else False)
        notes = tuple(each for each in (self.sandbox, self.disclosure) if each)
        notes += () if groups is None else (groups.note(len(self.ratio), cut=cut),)
        values = self.model["released"][: self.model.get("values", 0)] if "released" in self.model else []
        notes = (*notes, _VALUES + ", ".join(map(_single, values)) + ".") if values else notes
        if "derived" in self.receipt:
            return (*notes, derived_note(self.receipt["derived"]))
        if "failed" in self.model:
            return (*notes, _FAILED)
        return (*notes, _WITHOUT) if after and self.model.get("without", True) else notes

    def to_dict(self) -> dict[str, Any]:
        """Return everything, row by row, as JSON values; dates and exact numbers are strings."""
        return {
            "columns": list(self.columns),
            "rows": [[_plain(cell) for cell in row] for row in self.rows],
            "intervals": [[None if ends == (None, None) else list(ends) for ends in row] for row in self.intervals],
            "ratio": list(self.ratio),
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "left": None if self.left is None else str(self.left),
            "replayed": self.replayed,
            "left_out": None if self.left_out is None else self.left_out.shown(),
            "notes": list(self.notes),
            "joint": self.joint,
            "receipt": dict(self.receipt),
        } | ({"model": dict(self.model)} if self.model else {})

    def document(self) -> dict[str, Any]:
        """Return the answer and its receipt, as `hubbub verify` reads them; the receipt contains the answer's hash."""
        if self.packed is not None:
            return {"answer": dict(self.packed), "receipt": dict(self.receipt)}
        outputs = _exchanged(self.outputs) if self.joint else self.outputs
        return {"answer": stored_answer(outputs, self.ratio, self.model), "receipt": dict(self.receipt)}

    def to_json(self) -> Json:
        """Return the document, the privacy cost and the remaining budget as JSON values."""
        return (
            self.document()
            | {
                "epsilon": str(self.epsilon),
                "delta": str(self.delta),
                "left": optional_text(self.left),
                "replayed": self.replayed,
                "left_out": None if self.left_out is None else self.left_out.shown(),
                "notes": list(self.notes),
            }
            | ({"intervals": "joint"} if self.joint else {})
        )

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        outputs, ratio, model = read_answer(data["answer"])
        epsilon, delta = Fraction(data["epsilon"]), Fraction(data["delta"])
        release = cls(
            outputs,
            ratio,
            epsilon,
            delta,
            data["receipt"],
            optional_fraction(data, "left"),
            data["replayed"],
            model,
            LeftOut.from_receipt(data["receipt"])
            if data.get("left_out") is None
            else LeftOut.from_json(data["left_out"]),
            packed=data["answer"] if is_packed(data["answer"]) else None,
        )
        return release.jointly() if data.get("intervals") == "joint" else release

    def to_csv(self) -> str:
        """Return CSV; each noisy column is followed by its interval as name_low and name_high."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        columns = self.flat()
        writer.writerow([column.name for column in columns])
        for row in zip(*(column.values for column in columns), strict=True):  # one by one: other threads can run
            writer.writerow(row)
        return file.getvalue()

    def export(self, path: str | Path) -> None:
        """Write all rows to a file whose name ends in .csv, .parquet or .arrow; the columns are those of `to_csv`."""
        arrow.write_file({column.name: (column.kind, column.values) for column in self.flat()}, path)

    def to_arrow(self, *, intervals: bool = True) -> Any:
        """Return a pyarrow Table with the same columns as `to_pandas` and the receipt in its metadata."""
        return arrow.to_arrow(self, intervals=intervals)

    def vega_lite(self, column: str | None = None) -> dict[str, Any]:
        """Return a chart of one column with its intervals as a Vega-Lite specification, as Altair draws it."""
        from hubbub.answers.vega import vega_lite  # here, because it imports this module

        return vega_lite(self, column)

    def flat(self, *, intervals: bool = True) -> list[Output]:
        """Return all columns; each noisy one is followed by the ends of its intervals, as name_low and name_high.

        A name that the query already uses gets an underscore more. Answers of the sandbox have a last column `made_up`.
        """
        taken, columns = set(self.columns), list[Output]()
        for output in self.outputs:
            columns.append(output)
            for end, values in (("low", output.low), ("high", output.high)) if intervals else ():
                if values is None:
                    continue
                name = f"{output.name}_{end}"
                while name in taken:
                    name += "_"
                taken.add(name)
                columns.append(Output(name, "real", values))
        mark = [Output(marked_column(taken), "boolean", [True] * len(self.ratio))]  # whoever gets the file sees it
        return columns + mark if is_made_up(self.receipt) else columns

    def to_pandas(self, *, intervals: bool = True) -> Any:
        """Return a pandas DataFrame with the receipt in `attrs`; the types depend only on the kinds of the columns.

        Each noisy column is followed by its interval as name_low and name_high; `intervals=False` leaves them out.
        """
        pandas = arrow.library("pandas")
        frame = pandas.DataFrame(
            {
                column.name: pandas.Series(column.entries(), dtype=_PANDAS[column.kind])
                for column in self.flat(intervals=intervals)
            }
        )
        frame.attrs["hubbub"] = dict(self.receipt)
        return frame

    def to_polars(self, *, intervals: bool = True) -> Any:
        """Return a polars DataFrame with the same columns as `to_pandas`."""
        polars = arrow.library("polars")
        kinds = {
            "boolean": polars.Boolean,
            "integer": polars.Int64,
            "real": polars.Float64,
            "text": polars.String,
            "date": polars.Date,
            "timestamp": polars.Datetime("us"),
        }
        return polars.DataFrame(
            {
                column.name: polars.Series(column.entries(), dtype=kinds[column.kind], nan_to_null=True)
                for column in self.flat(intervals=intervals)
            }
        )

    def plot(self, column: str | None = None) -> "Axes":
        """Plot one column (by default the first noisy one) with its intervals, one marker per row."""
        noisy = [output for output in self.outputs if output.low is not None and column in (None, output.name)]
        if not noisy:
            raise ParameterError(
                "HB131", "There is no such column with intervals.", f"Choose one of: {', '.join(self.columns)}."
            )
        pyplot = arrow.library("matplotlib.pyplot")
        output, positions = noisy[0], range(len(self.ratio))
        values = [float(value) if isinstance(value, int | float) else float("nan") for value in output.values]
        keys = [o.values for o in self.outputs if o.low is None]
        labels = [" · ".join(str(cell) for cell in key) for key in zip(*keys, strict=True)] or [""] * len(values)
        ends = zip(values, output.low or (), output.high or (), strict=True)
        errors = [(v - lo if lo is not None else 0.0, hi - v if hi is not None else 0.0) for v, lo, hi in ends]
        _, axes = pyplot.subplots()
        axes.errorbar(
            values,
            positions,
            xerr=[[max(0.0, below) for below, _ in errors], [max(0.0, above) for _, above in errors]],
            fmt="o",
            capsize=3,
        )
        axes.set_yticks(list(positions), labels=labels)
        axes.invert_yaxis()
        axes.set_xlabel(f"{self.sandbox} {output.name}, with 95% intervals (ε = {brief(self.epsilon)})".lstrip())
        return axes  # type: ignore[no-any-return]

    def _repr_html_(self) -> str:
        from hubbub.answers.notebook import to_html  # here, because it imports this module

        return to_html(self)

    def head(self, most: int) -> Self:
        """Return the same answer with its first rows alone, for what is shown of it."""
        if len(self.ratio) <= most:
            return self
        cut = [
            replace(
                each,
                values=each.values[:most],
                low=None if each.low is None else each.low[:most],
                high=None if each.high is None else each.high[:most],
                sampling=None if each.sampling is None else replace(each.sampling, values=each.sampling.values[:most]),
                joint=None if each.joint is None else (each.joint[0][:most], each.joint[1][:most]),
            )
            for each in self.outputs
        ]
        return replace(self, outputs=tuple(cut), ratio=self.ratio[:most], packed=None)

    def texts(self, most: int | None = None) -> list[tuple[str, ...]]:
        """Return each cell as text, with its interval if it has one, even if that is open on both sides."""
        if most is not None:
            return self.head(most).texts()
        noisy, empty = [output.low is not None for output in self.outputs], suppressed_text(self.receipt)
        dates = [o.values if o.kind != "timestamp" else without_midnight(o.values) for o in self.outputs]
        return [
            tuple(text(c, ends, noisy=each, empty=empty) for c, ends, each in zip(row, intervals, noisy, strict=True))
            for row, intervals in zip(zip(*dates, strict=True), self.intervals, strict=True)
        ]

    def cost(self) -> str:
        """Describe the privacy cost and the remaining budget."""
        if self.sandbox:
            return f"nothing, in the sandbox; ε = {brief(self.epsilon)} on the data" if self.epsilon else "nothing"
        if "session" in self.receipt:
            return f"nothing more: charge {self.receipt['session']} paid for all answers of the session"
        if "releases" in self.receipt:
            return "free: computed from earlier releases"
        if "derived" in self.receipt:
            return f"free: computed from {named([each['charge'] for each in self.receipt['derived']['sources']])}"
        if not self.epsilon and self.receipt.get("relation") == "replace":
            return "free: the number of rows is public under the replace relation"
        if not self.epsilon:
            return "free: the answer is exact, from public tables"
        spent = f"ε = {brief(self.epsilon)}" + (f", δ = {brief(self.delta)}" if self.delta else "")
        cost = f"free, from the ledger (originally {spent})" if self.replayed else spent
        return cost if self.left is None else f"{cost}; ε = {format_remaining(self.left)} remaining"

    def __repr__(self) -> str:
        rows = [self.columns, *self.texts(50)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(self.columns))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        more = [f"… {len(self.ratio) - 50} more rows"] if len(self.ratio) > 50 else []
        note = [f"Bounds: {self.left_out.sentence()}"] if self.left_out is not None else []
        others = [each for each in self.notes if each not in (self.sandbox, self.disclosure)]
        note += [f"Rules: {self.disclosure}"] * bool(self.disclosure)
        note += [f"{'Note' if each.startswith(AFTER_NOTES) else 'Groups'}: {each}" for each in others]
        return "\n".join([*([self.sandbox] if self.sandbox else []), *lines, *more, *note, f"Cost: {self.cost()}"])


def _single(table: Mapping[str, Any]) -> str:
    """Write the one number of a noisy result, with its name; or of how many keys it has one each."""
    *keys, column = table["columns"]
    if keys:
        return f"{column['name']} for each of {len(column['values']):,} keys"
    value = column["values"][0] if column["values"] else None
    return f"{column['name']} = {'NULL' if value is None else format(float(value), '.4g')}"


def _exchanged(outputs: Sequence[Output]) -> tuple[Output, ...]:
    """Exchange the intervals of single cells and those of all cells at once."""
    return tuple(
        each
        if each.joint is None or each.low is None or each.high is None
        else replace(each, low=each.joint[0], high=each.joint[1], joint=(each.low, each.high))
        for each in outputs
    )


def stored_answer(outputs: Sequence[Output], ratio: Sequence[float | None], model: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer in the format that is stored and hashed: lists, or a Parquet file where it is long."""
    long = any(isinstance(output.values, Column) for output in outputs)
    return pack_answer(outputs, ratio, model) if long else answer_json(outputs, ratio, model)


def answer_json(outputs: Sequence[Output], ratio: Sequence[float | None], model: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer, column by column and with its model, as lists."""
    columns = [
        {
            "name": output.name,
            "kind": output.kind,
            "values": [_plain(cell) for cell in output.values] if output.kind in _DATED else list(output.values),
            "low": None if output.low is None else list(output.low),
            "high": None if output.high is None else list(output.high),
        }
        | _optional_parts(output)
        for output in outputs
    ]
    return {"columns": columns, "ratio": list(ratio)} | ({"model": dict(model)} if model else {})


def _optional_parts(output: Output) -> dict[str, Any]:
    """Return the parts of a column that some answers do not have."""
    parts: dict[str, Any] = {}
    if output.sampling is not None:
        parts["sampling"] = {"values": list(output.sampling.values), "at_most": output.sampling.at_most}
    if output.joint is not None:
        parts["joint"] = {"low": list(output.joint[0]), "high": list(output.joint[1])}
    return parts


def read_answer(stored: Mapping[str, Any]) -> tuple[tuple[Output, ...], Sequence[float | None], dict[str, Any]]:
    """Parse the output of `stored_answer`: the columns, the ratio and the model."""
    if is_packed(stored):
        stored = unpack_answer(stored)
    outputs = []
    for column in stored["columns"]:
        values, parse = column["values"], _DATED.get(column["kind"])
        if parse is not None and not isinstance(values, Column):
            values = [None if value is None else parse(value) for value in values]
        sampling, joint = column.get("sampling"), column.get("joint")
        outputs.append(
            Output(
                column["name"],
                column["kind"],
                values,
                column["low"],
                column["high"],
                None if sampling is None else SamplingErrors(sampling["values"], sampling["at_most"]),
                None if joint is None else (joint["low"], joint["high"]),
            )
        )
    return tuple(outputs), stored["ratio"], stored.get("model") or {}


def _plain(cell: Cell) -> object:
    return cell.isoformat() if isinstance(cell, date) else cell
