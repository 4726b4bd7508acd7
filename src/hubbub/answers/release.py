"""A release: what an analyst gets for a charge. Public from here on; it can be stored, shown and shared."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

from hubbub.core.numbers import brief
from hubbub.core.wire import Json, optional_fraction, optional_text
from hubbub.errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Cell = bool | int | float | str | date | datetime | None
Ends = tuple[float | None, float | None]
"""The ends of a 95% interval; None where it is open, both None where there is none."""

_FOUR = Context(prec=4, rounding=ROUND_FLOOR)
_DATED = {"date": date.fromisoformat, "timestamp": datetime.fromisoformat}
#: Types that know NULL; microseconds reach from year 1 to year 9999.
_PANDAS = {
    "boolean": "boolean",
    "integer": "Int64",
    "real": "float64",
    "text": "str",
    "date": "datetime64[us]",
    "timestamp": "datetime64[us]",
}


@dataclass(frozen=True, slots=True)
class Output:
    """One column of an answer with the ends of its 95% intervals; a key is exact and has none."""

    name: str
    kind: str
    values: Sequence[Cell]
    low: Sequence[float | None] | None = None
    high: Sequence[float | None] | None = None


@dataclass(frozen=True)
class Release:
    """An answer, with its error, its price and its receipt.

    ratio     for each row, the privacy noise beside the sampling error of a count of that size (below 1: smaller)
    left      the largest ε that the analyst could still spend in one query
    replayed  it was paid for earlier: the same question on the same data costs nothing again
    model     of an analysis, what is published beside the columns: plain JSON values (see `hubbub.model`)
    """

    outputs: tuple[Output, ...]
    ratio: Sequence[float | None]
    epsilon: Fraction
    delta: Fraction
    receipt: Mapping[str, Any]
    left: Fraction | None = None
    replayed: bool = False
    model: Mapping[str, Any] = field(default_factory=dict)

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

    def to_dict(self) -> dict[str, Any]:
        """Give everything for JSON; dates as ISO text, exact numbers as text."""
        return {
            "columns": list(self.columns),
            "rows": [[_plain(cell) for cell in row] for row in self.rows],
            "intervals": [[None if ends == (None, None) else list(ends) for ends in row] for row in self.intervals],
            "ratio": list(self.ratio),
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "left": None if self.left is None else str(self.left),
            "replayed": self.replayed,
            "receipt": dict(self.receipt),
        } | ({"model": dict(self.model)} if self.model else {})

    def document(self) -> dict[str, Any]:
        """Give the answer with its receipt, as `hubbub verify` reads it: the receipt holds the answer's hash."""
        return {"answer": answer_json(self.outputs, self.ratio, self.model), "receipt": dict(self.receipt)}

    def answer_json(self) -> Json:
        """Give all of it for JSON: the document, and what it cost whom it was given to."""
        return self.document() | {
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "left": optional_text(self.left),
            "replayed": self.replayed,
        }

    @classmethod
    def from_json(cls, answer_json: Mapping[str, Any]) -> Self:
        """Read what `answer_json` gives."""
        outputs, ratio, model = read_answer(answer_json["answer"])
        epsilon, delta = Fraction(answer_json["epsilon"]), Fraction(answer_json["delta"])
        return cls(
            outputs,
            ratio,
            epsilon,
            delta,
            answer_json["receipt"],
            optional_fraction(answer_json, "left"),
            answer_json["replayed"],
            model,
        )

    def to_csv(self) -> str:
        """Give CSV: each column, and after a noisy one its interval as name_low and name_high."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        names, data = [], []
        for output in self.outputs:
            names.append(output.name)
            data.append(output.values)
            if output.low is not None and output.high is not None:
                names += [f"{output.name}_low", f"{output.name}_high"]
                data += [output.low, output.high]
        writer.writerow(names)
        for row in zip(*data, strict=True):  # not in one step, during which no other thread could run
            writer.writerow(row)
        return file.getvalue()

    def to_pandas(self) -> Any:
        """Give a pandas DataFrame; the receipt is in its `attrs`. Types follow from the columns' kinds alone."""
        pandas = _library("pandas")
        frame = pandas.DataFrame(
            {each.name: pandas.Series(list(each.values), dtype=_PANDAS[each.kind]) for each in self.outputs}
        )
        frame.attrs["hubbub"] = dict(self.receipt)
        return frame

    def to_polars(self) -> Any:
        """Give a polars DataFrame. Types follow from the columns' kinds alone."""
        polars = _library("polars")
        kinds = {
            "boolean": polars.Boolean,
            "integer": polars.Int64,
            "real": polars.Float64,
            "text": polars.String,
            "date": polars.Date,
            "timestamp": polars.Datetime("us"),
        }
        return polars.DataFrame(
            {each.name: polars.Series(list(each.values), dtype=kinds[each.kind]) for each in self.outputs}
        )

    def plot(self, column: str | None = None) -> "Axes":
        """Draw one column (the first noisy one) with its intervals, a mark for each row."""
        noisy = [output for output in self.outputs if output.low is not None and column in (None, output.name)]
        if not noisy:
            raise ParameterError("HB131", "there is no such column with intervals.", f"There are {self.columns}.")
        pyplot = _library("matplotlib.pyplot")
        output, places = noisy[0], range(len(self.ratio))
        values = [float(value) if isinstance(value, int | float) else float("nan") for value in output.values]
        keys = [o.values for o in self.outputs if o.low is None]
        labels = [" · ".join(str(cell) for cell in key) for key in zip(*keys, strict=True)] or [""] * len(values)
        ends = zip(values, output.low or (), output.high or (), strict=True)
        errors = [(v - lo if lo is not None else 0.0, hi - v if hi is not None else 0.0) for v, lo, hi in ends]
        _, axes = pyplot.subplots()
        axes.errorbar(
            values,
            places,
            xerr=[[max(0.0, below) for below, _ in errors], [max(0.0, above) for _, above in errors]],
            fmt="o",
            capsize=3,
        )
        axes.set_yticks(list(places), labels=labels)
        axes.invert_yaxis()
        axes.set_xlabel(f"{output.name}, with 95% intervals (ε = {brief(self.epsilon)})")
        return axes  # type: ignore[no-any-return]

    def _repr_html_(self) -> str:
        from hubbub.answers.notebook import to_html  # which draws releases, and so imports this

        return to_html(self)

    def texts(self) -> list[tuple[str, ...]]:
        """Give each cell as text, with ± where it has one."""
        return [
            tuple(text(cell, ends) for cell, ends in zip(row, rows_ends, strict=True))
            for row, rows_ends in zip(self.rows, self.intervals, strict=True)
        ]

    def price(self) -> str:
        """Say what it cost and what is left."""
        spent = f"ε = {brief(self.epsilon)}" + (f", δ = {brief(self.delta)}" if self.delta else "")
        what = f"replayed at no cost (paid {spent} before)" if self.replayed else f"cost {spent}"
        return what if self.left is None else f"{what}; ε = {format_remaining(self.left)} is left"

    def __repr__(self) -> str:
        rows = [self.columns, *self.texts()[:50]]
        widths = [max(len(row[place]) for row in rows) for place in range(len(self.columns))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        more = [f"… {len(self.ratio) - 50} more rows"] if len(self.ratio) > 50 else []
        return "\n".join([*lines, *more, self.price()])


def answer_json(outputs: Sequence[Output], ratio: Sequence[float | None], model: Mapping[str, Any]) -> dict[str, Any]:
    """Give an answer column by column, and its model if it has one, in the form that is stored and hashed."""
    columns = [
        {
            "name": output.name,
            "kind": output.kind,
            "values": [_plain(cell) for cell in output.values] if output.kind in _DATED else list(output.values),
            "low": None if output.low is None else list(output.low),
            "high": None if output.high is None else list(output.high),
        }
        for output in outputs
    ]
    return {"columns": columns, "ratio": list(ratio)} | ({"model": dict(model)} if model else {})


def read_answer(stored: Mapping[str, Any]) -> tuple[tuple[Output, ...], list[float | None], dict[str, Any]]:
    """Read what `answer_json` gives: the columns, the ratio and the model."""
    outputs = []
    for each in stored["columns"]:
        values, read = each["values"], _DATED.get(each["kind"])
        if read is not None:
            values = [None if value is None else read(value) for value in values]
        outputs.append(Output(each["name"], each["kind"], values, each["low"], each["high"]))
    return tuple(outputs), stored["ratio"], stored.get("model") or {}


def text(cell: Cell, ends: Ends = (None, None)) -> str:
    """Show one cell: with its ± where both ends are known, or with the ends where they are not alike.

    >>> text(1234, (1228.0, 1240.0)), text(0.123456789, (0.1, 0.146)), text(3, (0.0, 33.0)), text(None)
    ('1,234 ±6', '0.123 ±0.023', '3 (0 to 33)', '–')
    """
    low, high = ends
    if cell is None:
        return "–"
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return str(cell)
    if low is None and high is None:
        return f"{cell:,}" if isinstance(cell, int) else f"{cell:,.6g}"
    if low is None or high is None:
        return f"{_number(cell, 1.0)} ({_end(low)} to {_end(high)})"
    half = (high - low) / 2
    whole = isinstance(cell, int)
    if abs(cell - (low + high) / 2) > half / 10 or not half > 0:
        return f"{_number(cell, half)} ({_number(low, half, whole=whole)} to {_number(high, half, whole=whole)})"
    return f"{_number(cell, half)} ±{_number(half, half, whole=whole)}"


def format_remaining(value: Fraction) -> str:
    """Show what is left to four digits, rounded down: nobody shall count on more."""
    return f"{_FOUR.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize():f}"


def _number(value: float, half: float, *, whole: bool = False) -> str:
    """Show as many digits as the error leaves a meaning to: two of its own, and none of a part of a whole number."""
    if whole or isinstance(value, int) or half >= 10:
        return f"{value:,.0f}"
    if not half > 0:
        return f"{value:,g}"
    return f"{value:,.{max(0, min(9, 1 - _magnitude(half)))}f}"


def _end(value: float | None) -> str:
    return "…" if value is None else _number(value, 1.0)


def _magnitude(value: float) -> int:
    return int(f"{value:e}".partition("e")[2])


def _plain(cell: Cell) -> object:
    return cell.isoformat() if isinstance(cell, date) else cell


def _library(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        raise ParameterError("HB130", f"{package} is not installed.", f"Install it: pip install {package}") from None
