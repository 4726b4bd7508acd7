"""The five tasks with hubbub."""
# concepts: epsilon, privacy unit, bounds, declared values, budget, rows per person

from attempts import HERE, attempt

# task: set up
import hubbub

CONFIG = """
version: 1
datasets:
  people:
    source: people.csv
    unit: {column: person, groups: 1, rows: 1}
    columns: {age: {bounds: [18, 77]}, education: {values: [basic, school, university]}}
    budget: {epsilon: 1.5}
  visits:
    source: visits.csv
    unit: {column: person, groups: 1, rows: 5}
    columns: {cost: {bounds: [0, 100]}}
    budget: {epsilon: 0.5}
analysts: {ana: {people: {epsilon: 1.5}, visits: {epsilon: 0.5}}}
"""
(HERE / "hubbub.yaml").write_text(CONFIG)
h = hubbub.open(HERE / "hubbub.yaml")

# task: count
attempt("count", lambda: h.query("SELECT COUNT(*) AS n FROM people WHERE age >= 50", epsilon=0.5))

# task: mean
attempt("mean", lambda: h.query("SELECT AVG(age) AS age FROM people", epsilon=0.5))

# task: histogram
attempt("histogram", lambda: h.query("SELECT education, COUNT(*) AS n FROM people GROUP BY education", epsilon=0.5))

# task: budget
attempt("budget", lambda: h.query("SELECT COUNT(*) AS n FROM people WHERE age >= 51", epsilon=0.5))

# task: people with several rows
attempt("people", lambda: h.query("SELECT COUNT(*) AS n FROM visits", epsilon=0.5))


# wrong: mean without bounds
def changed(name, old, new):
    if old not in CONFIG:
        raise AssertionError(old)
    folder = HERE / name
    folder.mkdir()
    for table in ("people.csv", "visits.csv"):
        (folder / table).write_bytes((HERE / table).read_bytes())
    (folder / "hubbub.yaml").write_text(CONFIG.replace(old, new))
    return hubbub.open(folder / "hubbub.yaml")


def unbounded():
    with changed("unbounded", "age: {bounds: [18, 77]}", "age: {type: integer}") as other:
        return other.query("SELECT AVG(age) AS age FROM people", epsilon=0.5)


attempt("wrong: mean without bounds", unbounded)


# wrong: groups read from the data
def undeclared():
    with changed("undeclared", "education: {values: [basic, school, university]}", "education: {type: text}") as other:
        return other.query("SELECT education, COUNT(*) AS n FROM people GROUP BY education", epsilon=0.5)


attempt("wrong: groups from the data", undeclared)


# wrong: no budget declared
def no_budget():
    with changed("no-budget", "    budget: {epsilon: 1.5}\n", "") as other:
        return other.query("SELECT COUNT(*) AS n FROM people", epsilon=0.5)


attempt("wrong: no budget declared", no_budget)


# wrong: rows taken for people
def rows_as_people():
    with changed("rows", "unit: {column: person, groups: 1, rows: 5}", "unit: row") as other:
        return other.query("SELECT COUNT(*) AS n FROM visits", epsilon=0.5)


attempt("wrong: rows taken for people", rows_as_people)
h.close()
