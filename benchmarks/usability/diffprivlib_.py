"""The five tasks with diffprivlib."""
# concepts: epsilon, bounds, range of a histogram, budget accountant, coding of texts, truncation by hand, group privacy

# task: set up
import pandas as pd
from attempts import EDUCATION, HERE, attempt
from diffprivlib import BudgetAccountant
from diffprivlib import tools as dp

people = pd.read_csv(HERE / "people.csv")
visits = pd.read_csv(HERE / "visits.csv")
budget = BudgetAccountant(epsilon=1.5)

# task: count
attempt("count", lambda: dp.count_nonzero(people["age"] >= 50, epsilon=0.5, accountant=budget))

# task: mean
attempt("mean", lambda: dp.mean(people["age"], epsilon=0.5, bounds=(18, 77), accountant=budget))

# task: histogram
codes = people["education"].map({name: code for code, name in enumerate(EDUCATION)})
attempt("histogram", lambda: dp.histogram(codes, epsilon=0.5, bins=3, range=(0, 3), accountant=budget))

# task: budget
attempt("budget", lambda: dp.count_nonzero(people["age"] >= 50, epsilon=0.5, accountant=budget))

# task: people with several rows
kept = visits.groupby("person").head(5)
attempt("people", lambda: dp.count_nonzero(kept["cost"] > 0, epsilon=0.5 / 5))

# wrong: mean without bounds
attempt("wrong: mean without bounds", lambda: dp.mean(people["age"], epsilon=0.5))

# wrong: groups read from the data
seen = people["education"].astype("category").cat.codes
attempt("wrong: groups from the data", lambda: dp.histogram(seen, epsilon=0.5))

# wrong: no budget declared
attempt("wrong: no budget declared", lambda: [dp.count_nonzero(people["age"] >= 50, epsilon=0.5) for _ in range(9)][-1])

# wrong: rows taken for people
attempt("wrong: rows taken for people", lambda: dp.count_nonzero(visits["cost"] > 0, epsilon=0.5))
