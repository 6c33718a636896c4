"""The table of names in a scale set's tags: nothing is lost, no machine is renamed."""

from hypothesis import given
from hypothesis import strategies as st

from gcluster.stacks.azure.scale_sets import Intent, NameTable, read, settle, without

LONGEST = 256
TOKEN = "0123abcd"  # noqa: S105  # an id
names = st.from_regex(r"[a-z]{1,8}(-[a-z0-9]{1,6})?-?[0-9]{0,4}", fullmatch=True)
numbers = st.integers(0, 2000).map(str)
name_tables = st.builds(
    NameTable,
    ids=st.dictionaries(names, numbers, max_size=100),
    intents=st.lists(
        st.builds(
            Intent,
            token=st.from_regex(r"[a-f0-9]{8}", fullmatch=True),
            target=st.integers(1, 1000),
            names=st.lists(names, min_size=1, max_size=60, unique=True).map(tuple),
        ),
        max_size=3,
        unique_by=lambda intent: intent.token,
    ).map(tuple),
)


@given(name_table=name_tables)
def test_a_table_is_read_back_as_it_was_written(name_table: NameTable) -> None:
    tags = name_table.tags()
    again = read({"gcluster-cluster": "x", **tags})
    assert again.ids == name_table.ids
    assert {i.token: (i.target, set(i.names)) for i in again.intents} == {
        i.token: (i.target, set(i.names)) for i in name_table.intents
    }
    assert all(len(value) <= LONGEST for value in tags.values())
    assert without({"a": "b", **tags}) == {"a": "b"}


def test_a_hundred_machines_that_count_up_need_one_short_tag() -> None:
    ids = {f"gpu{n:03d}": str(n - 1) for n in range(1, 101)}
    assert NameTable(ids=ids).tags() == {"gcluster-names-0": "gpu001..100:0"}


@given(
    name_table=name_tables,
    machines=st.sets(numbers, max_size=50),
    planned=st.lists(names, unique=True),
)
def test_no_machine_loses_its_name_and_none_has_two(
    name_table: NameTable, machines: set[str], planned: list[str]
) -> None:
    unique = {number: name for name, number in name_table.ids.items()}
    name_table = NameTable(
        ids={name: number for number, name in unique.items()}, intents=name_table.intents
    )
    after = settle(name_table, machines, planned)
    for name, number in name_table.ids.items():
        assert after.ids.get(name) == (number if number in machines else after.ids.get(name))
    assert len(set(after.ids.values())) == len(after.ids)
    assert set(after.ids.values()) <= machines
    assert settle(after, machines, planned) == after


def test_new_machines_get_the_names_of_an_intent_before_those_of_the_spec() -> None:
    intent = Intent(token=TOKEN, target=4, names=("gpu101", "gpu102"))
    name_table = settle(
        NameTable(ids={"gpu001": "0"}, intents=(intent,)), ["0", "3", "5"], ["gpu001", "gpu002"]
    )
    assert name_table == NameTable(ids={"gpu001": "0", "gpu101": "3", "gpu102": "5"})


def test_an_intent_stays_until_all_its_machines_are_there() -> None:
    intent = Intent(token=TOKEN, target=2, names=("gpu101", "gpu102"))
    assert settle(NameTable(intents=(intent,)), ["0"], []).intents == (intent,)


def test_a_number_that_azure_uses_again_keeps_the_name_of_its_place() -> None:
    name_table = NameTable(ids={"gpu001": "0", "gpu002": "1"})
    gone = settle(name_table, ["0"], [])
    assert gone.ids == {"gpu001": "0"}
    assert settle(gone, ["0", "1"], ["gpu001", "gpu002"]).ids == name_table.ids
