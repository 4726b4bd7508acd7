"""To which person the rows of each table belong, as foreign keys say."""

import pytest

from hubbub.config.database_template import database_template
from hubbub.config.proposal import Proposal, propose
from hubbub.engines.constraints import CatalogTable, ForeignKey
from hubbub.errors import ConfigError


def table(name: str, *references: tuple[str, str], key: str = "id", problem: str = "") -> CatalogTable:
    """A table with a primary key `id`, and references (column, table) to the keys of others."""
    keys = tuple(ForeignKey((column,), other, ("id",)) for column, other in references)
    return CatalogTable(name, (), ((key,),) if key else (), keys, problem=problem)


SHOP = (
    table("public.lines", ("order_id", "public.orders"), ("product", "public.products"), key=""),
    table("public.orders", ("buyer", "public.customers")),
    table("public.customers", ("region", "public.regions"), ("referred_by", "public.customers")),
    table("public.products"),
    table("public.regions"),
    table("public.messages", ("sender", "public.customers"), ("receiver", "public.customers")),
    table("public.files", ("message", "public.messages")),
    table("public.returns", ("order_id", "public.orders"), ("buyer", "public.customers")),
)


def proposed(*tables: CatalogTable, person: str | None = None) -> Proposal:
    return propose([(f"source of {t.name}", t) for t in tables], person=person)


def test_each_table_takes_the_nearest_way_to_the_people() -> None:
    schema = proposed(*SHOP, person="customers")
    ways = {name: None if way is None else (way.columns, way.table) for name, way in schema.owned.items()}
    assert ways == {
        "public.customers": None,
        "public.orders": (("buyer",), "public.customers"),
        "public.returns": (("buyer",), "public.customers"),
        "public.lines": (("order_id",), "public.orders"),
        "public.files": (("message",), "public.messages"),
    }
    assert [way.columns for way in schema.others["public.returns"]] == [("order_id",)]


def test_two_ways_of_one_length_are_left_to_the_owner() -> None:
    """A message has a sender and a receiver; only one of them would be protected."""
    schema = proposed(*SHOP, person="customers")
    assert [way.columns for way in schema.choices["public.messages"]] == [("sender",), ("receiver",)]
    assert any("messages" in note for note in schema.notes)


def test_what_leads_to_nobody_has_no_owner() -> None:
    schema = proposed(*SHOP, person="customers")
    assert not {"public.products", "public.regions"} & {*schema.owned, *schema.choices}
    assert any("products, regions" in note for note in schema.notes)


def test_people_are_proposed_by_name_and_reach_and_never_taken_for_granted() -> None:
    schema = proposed(*SHOP)
    assert (schema.person, schema.given) == ("public.customers", False)
    assert any(note.startswith("Proposed as the table of people: customers") for note in schema.notes)
    assert proposed(table("a"), table("b", ("a", "a"))).person == "a"
    assert proposed(table("a"), table("b")).person is None
    assert proposed(table("a"), table("b")).owned == {}


def test_a_reference_follows_the_order_of_the_key_and_only_the_first_key() -> None:
    person = CatalogTable("p", (), (("a", "b"), ("c",)))
    crossed = CatalogTable("x", (), (), (ForeignKey(("m", "n"), "p", ("b", "a")),))
    other = CatalogTable("y", (), (), (ForeignKey(("o",), "p", ("c",)),))
    schema = proposed(person, crossed, other, person="p")
    assert schema.owned["x"] == ForeignKey(("n", "m"), "p", ("a", "b"))
    assert "y" not in schema.owned


def test_a_table_that_cannot_be_read_is_on_no_way() -> None:
    hidden = table("o", ("p", "p"), problem="row-level security")
    schema = proposed(table("p"), hidden, table("l", ("o", "o")), person="p")
    assert set(schema.owned) == {"p"}


def test_datasets_of_one_name_in_two_schemas_get_both() -> None:
    schema = proposed(table("a.users"), table("b.users"), table("a.Logs"), person="a.users")
    assert schema.names == {"a.users": "a_users", "b.users": "b_users", "a.Logs": "logs"}


@pytest.mark.parametrize(
    ("tables", "says"),
    [
        ((table("a"),), "no table named"),
        ((table("a.users"), table("b.users")), "several tables"),
        ((table("users", key=""),), "no primary key"),
    ],
)
def test_a_person_table_that_cannot_be_is_refused(tables: tuple[CatalogTable, ...], says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        proposed(*tables, person="users")
    assert refused.value.code == "HB737"
    assert says in refused.value.message


def test_no_table_that_refers_to_people_by_another_key_is_said_to_be_about_nobody() -> None:
    """The remedy for a table about nobody is to make it public."""
    codes = CatalogTable("codes", (), (("id",),), (ForeignKey(("code",), "people", ("code",)),))
    schema = proposed(table("people", ("boss", "people")), codes, table("notes", ("code", "codes")), table("colors"))
    assert set(schema.owned) == {"people"}
    assert [way.columns for way in schema.others["people"]] == [("boss",)]
    text = database_template(schema, analyst="ana")
    assert "# boss leads to people too." in text
    for name, public in (("codes", False), ("notes", False), ("colors", True)):
        part = text.partition(f"  # {name}: ")[2].partition(f"# {name}:\n")[0]
        assert part
        assert ("public: true" in part) is public
    assert "no foreign key leads to people: colors." in schema.notes[-1]
