"""What a spec requires is read from the roles themselves."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gcluster.lifecycle.bundle.apt import distributions
from gcluster.lifecycle.bundle.requirements import PoolNeeds, needs_of, refuse_built_slurm
from gcluster.lifecycle.bundle.role_tasks import FACTS
from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load
from gcluster.schemas.spec import ClusterSpec
from gcluster.schemas.stack.bundle import RoleNeed

EXAMPLES = Path(__file__).parents[3] / "examples"


def needs(example: str, *only: str) -> dict[str, PoolNeeds]:
    """Return pool -> what its nodes require."""
    return {pool.pool: pool for pool in needs_of(with_own_slurm(example), load_catalog(), only)}


def with_own_slurm(example: str) -> ClusterSpec:
    """Return an example whose Slurm is the distribution's: no other is in a bundle."""
    spec = load(EXAMPLES / example).spec
    assert spec is not None
    software = msgspec.structs.replace(spec.software, slurm="distribution")
    return msgspec.structs.replace(spec, software=software)


def test_the_controller_requests_the_package_mirror_s_server_and_nodes_do_not() -> None:
    found = needs("local.yaml")
    nginx = RoleNeed(role="package_mirror", what="nginx")
    assert nginx in found["head"].packages
    assert nginx not in found["gpu"].packages
    assert RoleNeed(role="slurm", what="slurmd") in found["gpu"].packages
    assert found["gpu"].distribution == "debian-13"


def test_a_pinned_driver_is_installed_in_its_version_and_from_its_vendor() -> None:
    train = needs("bare-metal.yaml")["train"]
    versions = [a.what for a in train.packages if a.what.startswith("nvidia-driver-cuda=")]
    assert len(versions) == 1


def test_only_limits_it_to_roles() -> None:
    found = needs("local.yaml", "munge")
    assert {a.role for pool in found.values() for a in pool.packages} == {"munge"}


def test_slurm_alone_is_slurm_with_its_keys_accounts_and_pmix() -> None:
    found = needs("superpod-127.yaml", "slurm")
    everything = [requested for pool in found.values() for requested in pool.packages]
    assert {requested.role for requested in everything} >= {"slurm", "slurmdbd", "munge", "mpi"}
    assert {"slurmdbd", "mariadb-server", "munge"} <= {requested.what for requested in everything}


def test_slurm_alone_of_a_spec_without_accounts_has_no_database() -> None:
    found = needs("local.yaml", "slurm")
    roles = {requested.role for pool in found.values() for requested in pool.packages}
    assert roles == {"slurm", "munge", "mpi"}


def test_nothing_of_the_examples_is_left_for_a_node_to_report() -> None:
    for example in ("local.yaml", "bare-metal.yaml"):
        for pool in needs(example).values():
            assert pool.unclear == ()


def test_every_distribution_of_the_roles_that_has_apt_has_archives() -> None:
    with_apt = {name for name, facts in FACTS.items() if facts["pkg_mgr"] == "apt"}
    assert distributions().keys() == with_apt


def test_a_slurm_that_has_to_be_built_is_refused_with_what_to_write() -> None:
    spec = load(EXAMPLES / "bare-metal.yaml").spec
    assert spec is not None
    with pytest.raises(LifecycleError) as refused:
        refuse_built_slurm(spec, load_catalog())
    assert refused.value.diagnostics[0].hint == "write software: {slurm: distribution}"
    refuse_built_slurm(with_own_slurm("bare-metal.yaml"), load_catalog())
