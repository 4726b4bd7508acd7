"""A release: rows, intervals and texts agree, and nothing in a name or a key can break out of HTML or CSV."""

import csv
import io
import json
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from datetime import date, datetime
from fractions import Fraction

import matplotlib as mpl
import pytest

from hubbub.answers.cell_text import Cell, text
from hubbub.answers.release import Output, Release, answer_json
from hubbub.errors import ParameterError

mpl.use("Agg")


@pytest.fixture
def release() -> Release:
    return Release(
        outputs=(
            Output("region", "text", ["North", "<b>South</b>", None]),
            Output("day", "date", [date(2020, 1, 1), None, date(1, 1, 1)]),
            Output("n", "integer", [100, 3, 0], [90.0, 0.0, 0.0], [110.0, 13.0, 10.0]),
            Output("mean", "real", [2.5, None, 7.25], [2.0, None, None], [3.0, None, 8.0]),
        ),
        ratio=[0.5, 2.0, None],
        epsilon=Fraction(1, 10),
        delta=Fraction(0),
        receipt={"receipt": 1},
        left=Fraction(2, 3),
    )


def test_rows_and_intervals_are_row_by_row(release: Release) -> None:
    assert release.columns == ("region", "day", "n", "mean")
    assert release.rows[0] == ("North", date(2020, 1, 1), 100, 2.5)
    assert release.intervals[0] == ((None, None), (None, None), (90.0, 110.0), (2.0, 3.0))
    assert release.intervals[2][3] == (None, 8.0)


def test_what_is_left_is_computed_when_it_is_read_and_once(release: Release) -> None:
    calls = list[int]()

    def left() -> Fraction:
        calls.append(1)
        return Fraction(2, 3)

    lazy = Release(release.outputs, release.ratio, release.epsilon, release.delta, release.receipt, left)
    assert (lazy.rows, calls) == (release.rows, [])
    assert (lazy.left, lazy.left, calls) == (Fraction(2, 3), Fraction(2, 3), [1])
    assert lazy == release
    assert replace(lazy, replayed=True).left == Fraction(2, 3)
    assert len(calls) == 1
    with pytest.raises(FrozenInstanceError):
        lazy.left = Fraction(1)  # type: ignore[misc]
    assert Release((), [], Fraction(1), Fraction(0), {}).left is None


def test_json_has_exact_numbers_as_text_and_dates_as_iso(release: Release) -> None:
    read = json.loads(json.dumps(release.to_dict()))
    assert read["epsilon"] == "1/10"
    assert read["left"] == "2/3"
    assert read["rows"][2] == [None, "0001-01-01", 0, 7.25]
    assert read["intervals"][0] == [None, None, [90.0, 110.0], [2.0, 3.0]]
    assert read["intervals"][2][3] == [None, 8.0]


def test_csv_gives_the_ends_beside_each_noisy_column(release: Release) -> None:
    rows = list(csv.reader(io.StringIO(release.to_csv())))
    assert rows[0] == ["region", "day", "n", "n_low", "n_high", "mean", "mean_low", "mean_high"]
    assert rows[1] == ["North", "2020-01-01", "100", "90.0", "110.0", "2.5", "2.0", "3.0"]


def test_html_escapes_keys(release: Release) -> None:
    shown = release._repr_html_()
    assert "<b>South</b>" not in shown
    assert "&lt;b&gt;South" in shown
    assert "100 ±10" in shown


def test_text_says_what_it_cost_and_rounds_down_what_is_left(release: Release) -> None:
    assert repr(release).splitlines()[-1] == "Cost: ε = 0.1; ε = 0.6666 remaining"
    again = Release(release.outputs, release.ratio, release.epsilon, release.delta, {}, release.left, replayed=True)
    assert again.cost().startswith("free, from the ledger")


@pytest.mark.parametrize(
    ("cell", "ends", "shown"),
    [
        (1234567, (1234000.0, 1235134.0), "1,234,567 ±567"),
        (5, (0.0, 35.0), "5 (0 to 35)"),
        (5, (4.0, 6.0), "5 ±1"),
        (0.000123, (0.0001, 0.000146), "0.000123 ±0.000023"),
        (12.3456, (2.3456, 22.3456), "12 ±10"),
        (3.0, (3.0, 3.0), "3 ±0"),
        (-0.0, (-0.02, 0.02), "0.000 ±0.020"),
        (2024, (None, None), "2024"),
        (3.5, (None, 4.0), "3.5 (… to 4.0)"),
        (True, (None, None), "True"),
        (None, (0.0, 1.0), "–"),
        (datetime(2020, 1, 2, 3, 4), (None, None), "2020-01-02 03:04:00"),
    ],
)
def test_a_cell_shows_as_many_digits_as_its_error_leaves(
    cell: Cell, ends: tuple[float | None, float | None], shown: str
) -> None:
    assert text(cell, ends) == shown


def test_plot_draws_the_first_noisy_column_or_the_one_named(release: Release) -> None:
    assert "n, with 95%" in release.plot().get_xlabel()
    assert "mean, with 95%" in release.plot("mean").get_xlabel()
    with pytest.raises(ParameterError):
        release.plot("region")
    from matplotlib import pyplot

    pyplot.close("all")


@pytest.fixture
def every_kind() -> Release:
    """All kinds, each with a NULL; a real column that begins with a whole number; the first and last of dates."""
    return Release(
        outputs=(
            Output("t", "text", ["Ça", None, ""]),
            Output("b", "boolean", [True, None, False]),
            Output("d", "date", [date(1, 1, 1), None, date(9999, 12, 31)]),
            Output("s", "timestamp", [datetime(1, 1, 1, 2, 3), None, datetime(9999, 12, 31, 23, 59, 59, 999999)]),
            Output("k", "integer", [2**61 + 1, None, -3]),
            Output("x", "real", [1, None, 2.5], [0.0, None, 2.0], [2.0, None, None]),
        ),
        ratio=[0.5, None, None],
        epsilon=Fraction(1, 10),
        delta=Fraction(0),
        receipt={"receipt": 1, "data": [{"dataset": "visits"}]},
    )


def _without_rows(release: Release) -> Release:
    outputs = [replace(each, values=[], low=each.low and [], high=each.high and []) for each in release.outputs]
    return replace(release, outputs=tuple(outputs), ratio=[])


def _only_nulls(release: Release) -> Release:
    nulls: list[None] = [None]
    outputs = [
        replace(each, values=nulls, low=each.low and nulls, high=each.high and nulls) for each in release.outputs
    ]
    return replace(release, outputs=tuple(outputs), ratio=[1])


def test_a_pandas_frame_has_every_kind_and_the_receipt(every_kind: Release) -> None:
    frame = every_kind.to_pandas(intervals=False)
    kinds = {
        "t": "str",
        "b": "boolean",
        "d": "datetime64[us]",
        "s": "datetime64[us]",
        "k": "Int64",
        "x": "float64",
    }
    assert frame.dtypes.astype(str).to_dict() == kinds
    assert frame.attrs == {"hubbub": every_kind.receipt}
    assert frame.isna().to_numpy().tolist() == [[False] * 6, [True] * 6, [False] * 6]
    assert (frame["k"][0], frame["x"][0], frame["t"][0], bool(frame["b"][2])) == (2**61 + 1, 1.0, "Ça", False)
    assert frame["d"].dropna().dt.date.tolist() == [date(1, 1, 1), date(9999, 12, 31)]
    assert frame["s"].dropna().dt.to_pydatetime().tolist() == [every_kind.rows[0][3], every_kind.rows[2][3]]


def test_a_polars_frame_has_every_kind_and_the_same_rows(every_kind: Release) -> None:
    import polars

    frame = every_kind.to_polars(intervals=False)
    assert dict(frame.schema) == {
        "t": polars.String(),
        "b": polars.Boolean(),
        "d": polars.Date(),
        "s": polars.Datetime("us"),
        "k": polars.Int64(),
        "x": polars.Float64(),
    }
    assert frame.rows() == every_kind.rows


def test_frames_give_the_ends_beside_each_noisy_column_unless_told_otherwise(release: Release) -> None:
    pandas, polars = release.to_pandas(), release.to_polars()
    names = ["region", "day", "n", "n_low", "n_high", "mean", "mean_low", "mean_high"]
    assert list(pandas.columns) == polars.columns == names
    assert pandas["n_low"].tolist() == polars["n_low"].to_list() == [90.0, 0.0, 0.0]
    assert polars["mean_high"].to_list() == [3.0, None, 8.0]
    assert pandas["mean_low"].isna().tolist() == [False, True, True]
    assert list(release.to_pandas(intervals=False).columns) == list(release.columns)
    assert release.to_polars(intervals=False).columns == list(release.columns)


def test_the_ends_of_an_interval_never_replace_a_column_of_the_query(release: Release) -> None:
    clash = Release(
        (
            Output("n", "integer", [5], [1.0], [9.0]),
            Output("n_low", "integer", [70], [60.0], [80.0]),
            Output("n_low_", "text", ["x"]),
        ),
        [None],
        Fraction(1),
        Fraction(0),
        {},
    )
    names = ["n", "n_low__", "n_high", "n_low", "n_low_low", "n_low_high", "n_low_"]
    assert clash.to_csv().splitlines() == [",".join(names), "5,1.0,9.0,70,60.0,80.0,x"]
    assert clash.to_pandas()["n_low"].tolist() == clash.to_polars()["n_low"].to_list() == [70]


def test_types_of_frames_do_not_depend_on_the_values(every_kind: Release) -> None:
    for few in (_without_rows(every_kind), _only_nulls(every_kind)):
        assert few.to_pandas().dtypes.to_dict() == every_kind.to_pandas().dtypes.to_dict()
        assert few.to_polars().schema == every_kind.to_polars().schema
        assert len(few.to_pandas()) == len(few.to_polars()) == len(few.ratio)


@pytest.mark.parametrize(
    ("package", "method"), [("pandas", "to_pandas"), ("polars", "to_polars"), ("matplotlib", "plot")]
)
def test_a_library_that_is_missing_is_named(package: str, method: str) -> None:
    """In a process where the import fails; everything else of a release works there."""
    script = f"""
import sys
sys.modules[{package!r}] = None
from fractions import Fraction
from hubbub.answers.release import Output, Release
from hubbub.errors import ParameterError
release = Release((Output("n", "integer", [3], [1.0], [5.0]),), [0.5], Fraction(1), Fraction(0), {{}})
assert release.rows == [(3,)] and "3 ±2" in repr(release) and release.to_csv()
try:
    release.{method}()
except ParameterError as error:
    assert error.code == "HB130", error.code
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert f"{package} is not installed" in done.stdout


def test_the_stored_form_is_plain_json(release: Release) -> None:
    stored = answer_json(release.outputs, release.ratio, release.model)
    assert json.loads(json.dumps(stored)) == stored
    assert stored["columns"][1]["values"] == ["2020-01-01", None, "0001-01-01"]
