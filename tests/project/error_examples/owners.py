"""Rows with two owners: HB760 to HB765."""

from tests.project.error_examples.world import Example, python

BOTH = "[{column: sender, entity: account}, {column: receiver, entity: account}]"


def letters(sql: str, unit: str = BOTH, more: str = "") -> Example:
    """Estimate a query over letters, each of which has a sender and a receiver."""
    return python(
        '(folder / "letters.csv").write_text("sender,receiver,words\\n1,2,30\\n2,1,20\\n")\n'
        '(folder / "hubbub.yaml").write_text("""version: 1\n'
        "datasets:\n"
        "  letters:\n"
        "    source: letters.csv\n"
        f"    unit: {unit}\n"
        "    columns: {words: {bounds: [0, 1000]}}\n"
        "    budget: {epsilon: 1}\n"
        "analysts: {ana: {letters: {epsilon: 1}}}\n"
        '""")\n'
        f'hubbub.open("hubbub.yaml", analyst="ana").estimate("{sql}", epsilon="0.1"{more})'
    )


EXAMPLES: dict[str, Example] = {
    "HB760": letters("SELECT COUNT(*) FROM letters", unit="[{column: sender, entity: account}]"),
    "HB761": letters("SELECT COUNT(*) FROM (SELECT DISTINCT sender FROM letters)"),
    "HB762": letters("SELECT COUNT(*) FROM letters a JOIN letters b ON a.sender = b.receiver"),
    "HB763": letters("SELECT MEDIAN(words) FROM letters"),
    "HB764": letters("SELECT COUNT(*) FROM letters", more=", rows=1"),
    "HB765": letters("CALL tabulate(table => 'letters', columns => 'words')"),
}
