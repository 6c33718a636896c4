"""Which nodes see which storage: the tables say what a plain search says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gcluster.schemas.derived.storage import Mounts, MountTable, mount_point
from gcluster.schemas.spec import NfsStorage, Pool

_POOLS = {
    "a": Pool(site="here"),
    "b": Pool(site="here"),
    "c": Pool(site="there"),
}
_STORAGE = st.builds(
    NfsStorage,
    mount=st.sampled_from(["/data", "/home", "/data/"]),
    site=st.sampled_from([None, "here", "there"]),
    pools=st.lists(st.sampled_from(list(_POOLS)), max_size=2, unique=True),
    server=st.sampled_from(["a", "c", "10.0.0.9"]),
)


def _nodes(storage: NfsStorage) -> set[str]:
    if storage.pools:
        return set(storage.pools)
    return {name for name, pool in _POOLS.items() if storage.site in {None, pool.site}}


@given(st.lists(_STORAGE, max_size=5))
def test_pools_and_their_storage_agree(listed: list[NfsStorage]) -> None:
    storage = {str(number): one for number, one in enumerate(listed)}
    mounts = Mounts(storage, _POOLS)
    for name, one in storage.items():
        assert set(mounts.mounted_by(name)) == _nodes(one)
        for pool in _POOLS:
            assert (name in set(mounts.of(pool))) == (pool in _nodes(one))


@given(st.lists(_STORAGE, min_size=1, max_size=5))
def test_another_storage_at_the_place_is_found_where_nodes_mount_both(
    listed: list[NfsStorage],
) -> None:
    *before, last = listed
    table = MountTable(_POOLS)
    for number, one in enumerate(before):
        table.add(str(number), one)
    shared = {
        str(number)
        for number, one in enumerate(before)
        if mount_point(one) == mount_point(last) and _nodes(one) & _nodes(last)
    }
    found = table.other(mount_point(last), last)

    assert found in shared or (found is None and not shared)


def test_a_storage_is_where_it_has_or_where_its_server_is() -> None:
    storage = {
        "said": NfsStorage(mount="/a", site="here", server="c"),
        "served": NfsStorage(mount="/b", server="c"),
        "unknown": NfsStorage(mount="/c", server="10.0.0.9"),
    }
    mounts = Mounts(storage, _POOLS)

    assert [mounts.home(name) for name in storage] == ["here", "there", None]
    assert mounts.servers == {"c": ["said", "served"]}


def test_copies_of_copies_have_one_origin_and_a_circle_ends() -> None:
    storage = {
        "third": NfsStorage(mount="/c", copy_of="second"),
        "second": NfsStorage(mount="/b", copy_of="first"),
        "first": NfsStorage(mount="/a", copy_of="nowhere"),
        "round": NfsStorage(mount="/d", copy_of="about"),
        "about": NfsStorage(mount="/e", copy_of="round"),
    }
    mounts = Mounts(storage, _POOLS)

    assert [mounts.origin(name) for name in ("second", "third", "first")] == ["first"] * 3
    assert mounts.origin("round") == mounts.origin("about")
