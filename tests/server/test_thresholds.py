"""Sessions of above threshold over HTTP: opened by an analyst, asked without ε, and halted for everybody."""

from typing import Any

CALL = "CALL above_threshold(table => 'health', name => 'alarm', threshold => 1)"
ASKED = "CALL compare(table => 'health', name => 'alarm', query => 'SELECT COUNT(*) FROM health WHERE age >= {}')"


def test_a_session_is_opened_asked_and_halts(app: Any) -> None:
    assert app.ask(sql=CALL, epsilon="1").status_code == 200
    spent = app.spent()
    above = app.ask(sql=ASKED.format(0), header="one")
    assert above.status_code == 200, above.text
    assert [column["values"] for column in above.json()["answer"]["columns"]] == [[True], [1], [0]]
    assert app.ask(sql=ASKED.format(0), header="one").json()["receipt"] == above.json()["receipt"]
    halted = app.ask(sql=ASKED.format(1))
    assert (halted.status_code, halted.json()["code"]) == (422, "HB673")
    other = app.ask("ben", sql=ASKED.format(0))
    assert (other.status_code, other.json()["code"]) == (422, "HB675")
    assert app.spent() == spent
