"""Names of made machines: stable when a pool grows, apart between pools."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gcluster.inventory.hosts import pool_host_names
from gcluster.schemas.spec import Pool, PoolRole

POOL_NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,6}[a-z0-9])?", fullmatch=True)
ROLES: st.SearchStrategy[PoolRole] = st.sampled_from(["compute", "controller", "login"])


def names(pool: str, role: PoolRole, count: int | None) -> list[str]:
    return pool_host_names(pool, Pool(site="here", role=role, count=count))


def test_compute_nodes_are_numbered_from_001() -> None:
    assert names("gpu", "compute", 3) == ["gpu001", "gpu002", "gpu003"]


def test_a_lone_controller_is_called_as_its_pool() -> None:
    assert names("head", "controller", None) == ["head"]


def test_the_second_login_doesn_t_rename_the_first() -> None:
    assert names("login", "login", 2) == ["login", "login002"]


def test_a_pool_of_none_has_no_names() -> None:
    assert names("gpu", "compute", 0) == []


@given(POOL_NAMES, ROLES, st.integers(0, 1200), st.integers(0, 1200))
def test_growing_a_pool_renames_nothing(pool: str, role: PoolRole, one: int, other: int) -> None:
    small, large = sorted([one, other])
    assert names(pool, role, large)[:small] == names(pool, role, small)


@given(st.lists(POOL_NAMES, min_size=2, max_size=4, unique=True), st.integers(1, 1100))
def test_no_two_compute_pools_share_a_name(pools: list[str], count: int) -> None:
    made = [name for pool in pools for name in names(pool, "compute", count)]
    assert len(set(made)) == len(made)
