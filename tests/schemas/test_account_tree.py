"""An account's parts are all accounts below it, and a large tree is read once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gcluster.schemas.derived.graph import AccountTree
from gcluster.schemas.spec import Account

NAMES = [f"a{n}" for n in range(8)]
_parents = st.dictionaries(st.sampled_from(NAMES), st.none() | st.sampled_from([*NAMES, "other"]))


def _is_part_of(name: str, named: set[str], parents: dict[str, str | None]) -> bool:
    """Follow the parents up, as far as they are accounts of the spec, and no circle twice."""
    seen: set[str] = set()
    while name not in named:
        parent = parents[name]
        if parent is None or parent not in parents or parent in seen:
            return False
        seen.add(name)
        name = parent
    return True


@given(parents=_parents, named=st.sets(st.sampled_from(NAMES)))
def test_the_parts_are_those_whose_parents_lead_to_a_named_account(
    parents: dict[str, str | None], named: set[str]
) -> None:
    tree = AccountTree({name: Account(parent=parent) for name, parent in parents.items()})
    below = {name for name in parents if _is_part_of(name, named, parents)}
    assert tree.with_parts(named) == named | below
