"""Editing hubbub.yaml: the change and nothing but the change, whole or not at all."""

import stat
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.accounting.filters import Budget
from hubbub.accounting.policy import FairShares
from hubbub.config import Config, load
from hubbub.config.document import expect_mapping, parse_yaml
from hubbub.config.policy import parse_policy
from hubbub.errors import ConfigError, HubbubError, ParameterError
from hubbub.server import config_editor

TEXT = """\
# The clinic's promise. Signed off by the board on 2026-03-01.
version: 1
datasets:
  visits:
    source: visits.csv   # exported nightly
    unit: row
    columns:
      region: {values: [North, "South"]}   # only two
      age: {type: integer, bounds: [0, 110]}
    budget: {epsilon: 6, delta: 1e-9}

analysts:
  # the resident statistician
  ana: {visits: {epsilon: 2}}
  ben:
    visits:
      epsilon: 0.5   # a visitor
groups:
  interns: {members: [ana, ben], visits: {epsilon: 3}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "visits.csv").write_text("region,age\nNorth,3\n")
    path = tmp_path / "hubbub.yaml"
    path.write_text(TEXT)
    return path


def cap(epsilon: str, delta: str = "0") -> Budget:
    return Budget(Fraction(epsilon), Fraction(delta))


def test_what_is_not_changed_stays_as_it_was_written() -> None:
    text = config_editor.changed(TEXT, config_editor.put_analyst("zoe", {"visits": cap("0.1")}))
    old, new = TEXT.splitlines(), text.splitlines()
    assert [line for line in new if line not in old] == ["  zoe: {visits: {epsilon: 0.1}}"]
    assert [line for line in old if line not in new] == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (config_editor.put_analyst("zoe", {}), {"zoe": {}}),
        (
            config_editor.put_analyst("zoe", {"visits": cap("1/3", "1/1000000")}),
            {"zoe": {"visits": {"epsilon": "1/3"}}},
        ),
        (config_editor.put_analyst("ben", {"visits": cap("1")}), {"ben": {"visits": {"epsilon": 1}}}),
        (config_editor.raise_cap("ana", "visits", Fraction("0.5")), {"ana": {"visits": {"epsilon": 2.5}}}),
        (config_editor.raise_cap("ben", "visits", Fraction("0.1")), {"ben": {"visits": {"epsilon": 0.6}}}),
    ],
)
def test_each_change_reads_back_as_it_was_meant(change: config_editor.Change, expected: dict[str, object]) -> None:
    document = expect_mapping(parse_yaml(config_editor.changed(TEXT, change)), "")
    analysts = expect_mapping(document["analysts"], "")
    for name, caps in expected.items():
        written = expect_mapping(analysts[name], "")
        for dataset, terms in expect_mapping(caps, "").items():
            assert expect_mapping(written[dataset], "")["epsilon"] == expect_mapping(terms, "")["epsilon"]
    assert "# a visitor" in config_editor.changed(TEXT, change) or "ben" in expected


def test_an_analyst_who_leaves_leaves_the_groups_too() -> None:
    text = config_editor.changed(TEXT, config_editor.remove_analyst("ana"))
    assert "ana" not in text.replace("analysts", "")
    assert "members: [ben]" in text
    both = config_editor.changed(text, config_editor.remove_analyst("ben"))
    assert "groups" not in both
    assert parse_policy(both).analysts == {}


def test_an_analyst_who_leaves_leaves_projects_and_fair_shares() -> None:
    """The rest stays as it was, and a change of a group's cap keeps how it is divided."""
    text = """version: 1
datasets: {t: {source: t.csv, unit: row, budget: {epsilon: 5, fair: {needs: {ben: 0.1}}}}}
groups: {team: {members: [ana, ben, cy], t: {epsilon: 3, fair: {needs: {ben: 0.2, cy: 0.1}}}}}
projects:
  hip: {members: [ben], group: team, until: 2027-01-01, t: {epsilon: 1}}
  knee: {members: [cy], group: team, until: 2027-01-01, t: {epsilon: 1}}
"""
    policy = parse_policy(config_editor.changed(text, config_editor.remove_analyst("ben")))
    assert list(policy.projects) == ["knee"]
    (of_dataset,), of_group = policy.datasets["t"], policy.groups["team"][1]["t"]
    assert (of_dataset.fair, of_group.fair) == (FairShares(), FairShares(needs=(("cy", Fraction(1, 10)),)))
    raised = config_editor.put_group("team", ["ana", "ben", "cy"], {"t": cap("4")})
    policy = parse_policy(config_editor.changed(text, raised))
    changed = policy.groups["team"][1]["t"]
    assert changed.budget.epsilon == 4
    assert changed.fair is not None
    assert len(changed.fair.needs) == 2


def test_groups_are_made_changed_and_removed() -> None:
    text = config_editor.changed(TEXT, config_editor.put_group("guests", ["ana", "eva"], {"visits": cap("4")}))
    assert parse_policy(text).groups["guests"][0] == ("ana", "eva")
    text = config_editor.changed(text, config_editor.put_group("interns", ["ben"], {"visits": cap("2")}))
    assert parse_policy(text).groups["interns"][0] == ("ben",)
    assert "groups" not in config_editor.changed(TEXT, config_editor.remove_group("interns"))


@pytest.mark.parametrize(
    "change",
    [
        config_editor.remove_analyst("anna"),
        config_editor.remove_group("intern"),
        config_editor.raise_cap("zoe", "visits", Fraction(1)),
    ],
)
def test_what_does_not_exist_is_not_changed(change: config_editor.Change) -> None:
    with pytest.raises(ConfigError, match="HB405"):
        config_editor.changed(TEXT, change)


def test_a_cap_that_is_the_groups_is_not_raised_by_one_of_the_analysts_own() -> None:
    text = config_editor.changed(TEXT, config_editor.put_group("interns", ["eva"], {"visits": cap("3")}))
    with pytest.raises(ConfigError, match="HB430"):
        config_editor.changed(text, config_editor.raise_cap("eva", "visits", Fraction(1)))


@pytest.mark.parametrize("by", ["4", "10", "1.0000001"])
def test_no_cap_is_raised_above_that_of_the_data_set_or_of_a_group(file: Path, by: str) -> None:
    before = file.read_text()
    with pytest.raises(ConfigError, match="HB406"):
        config_editor.edit(file, config_editor.raise_cap("ana", "visits", Fraction(by)))
    assert file.read_text() == before
    assert sorted(path.name for path in file.parent.iterdir() if path.name.startswith("hubbub")) == ["hubbub.yaml"]


def test_an_edit_replaces_the_file_and_keeps_the_previous_one_and_the_rights(file: Path) -> None:
    file.chmod(0o640)
    digest = config_editor.edit(file, config_editor.raise_cap("ana", "visits", Fraction("0.5")))
    assert load(file).hash == digest == config_editor.read(file).hash
    assert load(file).policy.analysts["ana"]["visits"].budget.epsilon == Fraction("2.5")
    assert (file.parent / "hubbub.yaml.previous").read_text() == TEXT
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert not [
        path for path in file.parent.iterdir() if path.name.startswith(".hubbub.yaml.") and path.suffix != ".lock"
    ]


def test_an_edit_of_what_was_changed_since_is_refused(file: Path) -> None:
    first = config_editor.read(file)
    config_editor.edit(file, config_editor.put_analyst("zoe", {}))
    with pytest.raises(ConfigError, match="HB426"):
        config_editor.apply(file, first.text + "# mine\n", expected=first.hash)
    assert "zoe" in file.read_text()


def test_what_the_acceptance_raises_keeps_the_file_as_it_is(file: Path) -> None:
    def refuse(config: Config) -> None:
        assert "zoe" in config.policy.analysts
        raise ParameterError("HB141", "decided before.")

    with pytest.raises(ParameterError, match="HB141"):
        config_editor.rewrite(
            file, lambda text: config_editor.changed(text, config_editor.put_analyst("zoe", {})), accept=refuse
        )
    assert file.read_text() == TEXT


def test_edits_at_once_all_count(file: Path) -> None:
    def add(number: int) -> str:
        return config_editor.edit(file, config_editor.put_analyst(f"new{number}", {"visits": cap("0.1")}))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(24)))
    assert set(load(file).policy.analysts) == {"ana", "ben", *(f"new{number}" for number in range(24))}


def test_a_reader_sees_the_old_file_or_the_new_one(file: Path) -> None:
    done = threading.Event()
    seen: set[str] = set()

    def look() -> None:
        while not done.is_set():
            seen.add(file.read_text())

    watcher = threading.Thread(target=look)
    watcher.start()
    wanted = {file.read_text()}
    for number in range(20):
        config_editor.edit(file, config_editor.put_analyst(f"new{number}", {}))
        wanted.add(file.read_text())
    done.set()
    watcher.join()
    assert seen <= wanted


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (TEXT.replace("epsilon: 6,", "epsilon: -6,"), "HB404"),
        (TEXT.replace("visits.csv", "gone.csv"), "HB411"),
        (TEXT + "server: {prot: 80}\n", "HB401"),
        (TEXT + "server: {host: 0.0.0.0}\n", "HB421"),
        ("a: [", "HB400"),
        ("", "HB403"),
        (TEXT + "#" * 1_000_000, "HB400"),
    ],
)
def test_a_text_that_cannot_be_is_refused_and_the_file_stays(file: Path, text: str, code: str) -> None:
    checked = config_editor.check(file, text)
    assert checked.config is None
    assert code in {problem.code for problem in checked.problems}
    if len(text) < config_editor.MAX_CHARACTERS:
        with pytest.raises(HubbubError):
            config_editor.apply(file, text, expected=config_editor.read(file).hash)
    assert file.read_text() == TEXT


def test_a_check_shows_the_difference_and_changes_nothing(file: Path) -> None:
    checked = config_editor.check(file, TEXT.replace("{epsilon: 2}", "{epsilon: 3}"))
    assert checked.problems == ()
    assert "-  ana: {visits: {epsilon: 2}}" in checked.diff
    assert "+  ana: {visits: {epsilon: 3}}" in checked.diff
    assert file.read_text() == TEXT
    assert len(list(file.parent.iterdir())) == 2


def test_a_link_stays_a_link(file: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    real = file.rename(tmp_path / "real" / "config.yaml")
    file.symlink_to(real)
    config_editor.edit(file, config_editor.put_analyst("zoe", {}))
    assert file.is_symlink()
    assert "zoe" in real.read_text()
    assert load(file).policy.analysts.keys() == {"ana", "ben", "zoe"}


def test_a_file_that_is_not_there_is_an_error_in_words(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="HB4"):
        config_editor.edit(tmp_path / "no" / "hubbub.yaml", config_editor.put_analyst("zoe", {}))


def planted(document: config_editor.Document) -> None:
    """A change that does something else on a styled document than on a plain one."""
    document["analysts"]["eve" if hasattr(document, "fa") else "zoe"] = {}


def test_a_rewriting_that_changes_more_than_it_should_is_caught() -> None:
    with pytest.raises(ConfigError, match="HB429"):
        config_editor.changed(TEXT, planted)


_names = st.from_regex(r"[a-z][a-z.@+-]{0,8}[a-z0-9]", fullmatch=True)
_numbers = st.fractions(min_value=Fraction(1, 1000), max_value=6, max_denominator=1000)


@settings(max_examples=30)
@given(name=_names, epsilon=_numbers, by=_numbers)
def test_every_name_and_number_comes_back_exactly(name: str, epsilon: Fraction, by: Fraction) -> None:
    def caps(text: str) -> Fraction:
        document = expect_mapping(parse_yaml(text), "")
        entry = expect_mapping(expect_mapping(document["analysts"], "")[name], "")
        return Fraction(str(expect_mapping(entry["visits"], "")["epsilon"]))

    text = config_editor.changed(TEXT, config_editor.put_analyst(name, {"visits": Budget(epsilon, Fraction(0))}))
    assert caps(text) == epsilon
    assert caps(config_editor.changed(text, config_editor.raise_cap(name, "visits", by))) == epsilon + by


def test_anchors_and_quotes_survive() -> None:
    text = TEXT.replace("ana: {visits: {epsilon: 2}}", "ana: &a {visits: {epsilon: '2'}}\n  eva: *a")
    out = config_editor.changed(text, config_editor.put_analyst("zoe", {}))
    assert "eva: *a" in out
    assert "'2'" in out
    change: Callable[[config_editor.Document], None] = config_editor.raise_cap("ana", "visits", Fraction(1))
    assert parse_policy(config_editor.changed(text, change)).analysts["eva"]["visits"].budget.epsilon in (2, 3)
