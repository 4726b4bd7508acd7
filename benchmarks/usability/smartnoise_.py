"""The five tasks with SmartNoise SQL."""
# concepts: epsilon, delta, metadata, private identifier, rows per person, bounds, price of each query, odometer

# task: set up
import pandas as pd
import snsql
from attempts import HERE, attempt
from snsql import Privacy

columns = {
    "max_ids": 1,
    "person": {"type": "int", "private_id": True},
    "age": {"type": "int", "lower": 18, "upper": 77},
    "education": {"type": "string"},
}
people = pd.read_csv(HERE / "people.csv")
reader = snsql.from_df(people, privacy=Privacy(epsilon=0.5), metadata={"": {"": {"people": columns}}})

# task: count
attempt("count", lambda: reader.execute("SELECT COUNT(*) AS n FROM people WHERE age >= 50"))

# task: mean
attempt("mean", lambda: reader.execute("SELECT AVG(age) AS mean FROM people"))

# task: histogram
by_education = "SELECT education, COUNT(*) AS n FROM people GROUP BY education"
attempt("histogram", lambda: reader.execute(by_education))
attempt("spent after three", lambda: reader.odometer.spent)

# task: budget
attempt("budget", lambda: reader.execute("SELECT COUNT(*) AS n FROM people WHERE age >= 50"))

# task: people with several rows
visits = pd.read_csv(HERE / "visits.csv")
of_people = {"max_ids": 5, "person": {"type": "int", "private_id": True}, "cost": {"type": "int"}}
visits_of_people = snsql.from_df(visits, privacy=Privacy(epsilon=0.5), metadata={"": {"": {"visits": of_people}}})
attempt("people", lambda: visits_of_people.execute("SELECT COUNT(*) AS n FROM visits"))

# wrong: mean without bounds
unbounded = columns | {"age": {"type": "int"}}
without = snsql.from_df(people, privacy=Privacy(epsilon=0.5), metadata={"": {"": {"people": unbounded}}})
attempt("wrong: mean without bounds", lambda: without.execute("SELECT AVG(age) AS mean FROM people"))

# wrong: groups read from the data
attempt("wrong: groups from the data", lambda: reader.execute(by_education))  # thresholded with delta: private

# wrong: no budget declared
attempt("wrong: no budget declared", lambda: [reader.execute(by_education) for _ in range(9)][-1])

# wrong: rows taken for people
rows = {"row_privacy": True, "person": {"type": "int"}, "cost": {"type": "int"}}
of_rows = snsql.from_df(visits, privacy=Privacy(epsilon=0.5), metadata={"": {"": {"visits": rows}}})
attempt("wrong: rows taken for people", lambda: of_rows.execute("SELECT COUNT(*) AS n FROM visits"))
