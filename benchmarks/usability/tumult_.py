"""The five tasks with Tumult Analytics."""
# concepts: epsilon, session, protected change, privacy budget, query builder, keys, bounds, constraint on rows, Spark

import os
import sys

from attempts import EDUCATION, HERE, attempt

os.environ["PYSPARK_PYTHON"] = sys.executable

# task: set up
from pyspark.sql import SparkSession
from tmlt.analytics import AddOneRow, AddRowsWithID, KeySet, MaxRowsPerID, PureDPBudget, QueryBuilder, Session

spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
people = spark.read.csv(str(HERE / "people.csv"), header=True, inferSchema=True)
visits = spark.read.csv(str(HERE / "visits.csv"), header=True, inferSchema=True)
session = Session.from_dataframe(PureDPBudget(1.5), "people", people, protected_change=AddOneRow())

# task: count
older = QueryBuilder("people").filter("age >= 50").count()
attempt("count", lambda: session.evaluate(older, PureDPBudget(0.5)).collect())

# task: mean
mean = QueryBuilder("people").average("age", low=18, high=77)
attempt("mean", lambda: session.evaluate(mean, PureDPBudget(0.5)).collect())

# task: histogram
keys = KeySet.from_dict({"education": list(EDUCATION)})
by_education = QueryBuilder("people").groupby(keys).count()
attempt("histogram", lambda: session.evaluate(by_education, PureDPBudget(0.5)).collect())

# task: budget
attempt("budget", lambda: session.evaluate(older, PureDPBudget(0.5)).collect())

# task: people with several rows
of_people = Session.from_dataframe(PureDPBudget(0.5), "visits", visits, protected_change=AddRowsWithID("person"))
counted = QueryBuilder("visits").enforce(MaxRowsPerID(5)).count()
attempt("people", lambda: of_people.evaluate(counted, PureDPBudget(0.5)).collect())


# wrong: mean without bounds
def fresh():
    return Session.from_dataframe(PureDPBudget(0.5), "people", people, protected_change=AddOneRow())


attempt(
    "wrong: mean without bounds", lambda: fresh().evaluate(QueryBuilder("people").average("age"), PureDPBudget(0.5))
)

# wrong: groups read from the data
found = QueryBuilder("people")
attempt(
    "wrong: groups from the data", lambda: fresh().evaluate(found.groupby(["education"]).count(), PureDPBudget(0.5))
)

# wrong: no budget declared
attempt(
    "wrong: no budget declared",
    lambda: Session.from_dataframe(source_id="people", dataframe=people, protected_change=AddOneRow()),
)

# wrong: rows taken for people
of_rows = Session.from_dataframe(PureDPBudget(0.5), "visits", visits, protected_change=AddOneRow())
attempt(
    "wrong: rows taken for people",
    lambda: of_rows.evaluate(QueryBuilder("visits").count(), PureDPBudget(0.5)).collect(),
)
