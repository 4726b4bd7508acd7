"""The five tasks with OpenDP's queries on Polars."""
# concepts: epsilon, privacy unit, privacy loss, compositor, split of the budget, contributions
# concepts: public keys, margin, bounds, types and nulls, lazy frame

# task: set up
import opendp.prelude as dp
import polars as pl
from attempts import EDUCATION, HERE, attempt

dp.enable_features("contrib")
context = dp.Context.compositor(
    data=pl.scan_csv(HERE / "people.csv"),
    privacy_unit=dp.unit_of(contributions=1),
    privacy_loss=dp.loss_of(epsilon=1.5),
    split_evenly_over=3,
    margins=[dp.polars.Margin(max_length=1000)],
)

# task: count
attempt("count", lambda: context.query().filter(pl.col.age >= 50).select(dp.len()).release().collect())

# task: mean
age = pl.col.age.fill_null(50).dp.mean((18, 77))
attempt("mean", lambda: context.query().select(age).release().collect())

# task: histogram
keys = pl.LazyFrame({"education": EDUCATION})
by_education = context.query().group_by("education").agg(dp.len()).with_keys(keys)
attempt("histogram", lambda: by_education.release().collect())

# task: budget
attempt("budget", lambda: context.query().filter(pl.col.age >= 50).select(dp.len()).release().collect())


# task: people with several rows
def visits(unit):
    return dp.Context.compositor(
        data=pl.scan_csv(HERE / "visits.csv"),
        privacy_unit=unit,
        privacy_loss=dp.loss_of(epsilon=0.5),
        split_evenly_over=1,
    )


unit = dp.unit_of(contributions=1, identifier=pl.col.person)
counted = visits(unit).query().truncate_per_group(5).select(dp.len())
attempt("people", lambda: counted.release().collect())


# wrong: mean without bounds
def fresh():
    return dp.Context.compositor(
        data=pl.scan_csv(HERE / "people.csv"),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=0.5),
        split_evenly_over=1,
        margins=[dp.polars.Margin(max_length=1000)],
    )


attempt("wrong: mean without bounds", lambda: fresh().query().select(pl.col.age.mean()).release().collect())

# wrong: groups read from the data
found = fresh().query().group_by("education").agg(dp.len())
attempt("wrong: groups from the data", lambda: found.release().collect())


# wrong: no budget declared
def undeclared():
    return dp.Context.compositor(data=pl.scan_csv(HERE / "people.csv"), privacy_unit=dp.unit_of(contributions=1))


attempt("wrong: no budget declared", lambda: undeclared().query().select(dp.len()).release().collect())

# wrong: rows taken for people
rows = dp.unit_of(contributions=1)
attempt("wrong: rows taken for people", lambda: visits(rows).query().select(dp.len()).release().collect())
