"""The command line that opens a shell on a node: the right node, its pinned key, and no secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcluster.lifecycle.cluster.cluster import Cluster, open_cluster
from gcluster.lifecycle.cluster.hosts import existing_hosts
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.nodes.ssh.shell import ssh_argv

from .sample_cluster import SampleCluster

PUBLIC = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHUrZ0mYk0Y3pYk6m2m1s0Yq0vXgq5m5n6d7e8f9a0b1"
SPEC = """\
apiVersion: gcluster/v1
name: metal
sites:
  room:
    provider: bare-metal
    ssh: {{user: ops, key: {key}}}
pools:
  gpu:
    site: room
    machine: hgx-h100-8
    hosts:
      - {{name: gpu001, address: 192.0.2.1, host_key: "{host_key}"}}
      - {{name: gpu002, address: 192.0.2.2, user: admin, port: 2200}}
  head: {{site: room, role: controller, hosts: [{{name: head01, address: 192.0.2.3}}]}}
{login}scheduler: {{type: slurm}}
"""
LOGIN = "  login: {site: room, role: login, hosts: [{name: login01, address: 192.0.2.4}]}\n"


@pytest.fixture
def key(own_places: Path) -> Path:
    """Give a private key's file."""
    path = own_places / "id_ed25519"
    path.write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nsecret\n", encoding="utf-8")
    return path


def _metal(folder: Path, key: Path, login: str = "") -> Cluster:
    path = folder / "metal.yaml"
    path.write_text(SPEC.format(key=key, host_key=PUBLIC, login=login), encoding="utf-8")
    return open_cluster(str(path))


@pytest.fixture
def metal(own_places: Path, key: Path) -> Cluster:
    """Give a cluster of hosts that exist, one of them with a pinned key."""
    return _metal(own_places, key)


def _known_hosts(argv: list[str]) -> Path:
    (option,) = [word for word in argv if word.startswith("UserKnownHostsFile=")]
    return Path(option.partition("=")[2].strip('"'))


def test_an_unknown_host_key_is_never_accepted(metal: Cluster) -> None:
    assert "StrictHostKeyChecking=yes" in ssh_argv(metal, "gpu002", [])


def test_a_pinned_key_is_the_only_one_that_is_accepted(metal: Cluster) -> None:
    argv = ssh_argv(metal, "gpu001", [])
    (alias,) = [word.partition("=")[2] for word in argv if word.startswith("HostKeyAlias=")]
    assert _known_hosts(argv).read_text(encoding="utf-8") == f"{alias} {PUBLIC}\n"
    assert "GlobalKnownHostsFile=/dev/null" in argv


def test_a_host_without_a_pinned_key_is_vouched_for_by_the_users_known_hosts(
    metal: Cluster,
) -> None:
    argv = ssh_argv(metal, "gpu002", [])
    assert not any(word.startswith("UserKnownHostsFile=") for word in argv)


def test_user_port_and_address_are_the_nodes_own(metal: Cluster) -> None:
    argv = ssh_argv(metal, "gpu002", [])
    assert argv[argv.index("-l") + 1] == "admin"
    assert argv[argv.index("-p") + 1] == "2200"
    assert "192.0.2.2" in argv


def test_the_key_is_named_by_its_path_and_never_shown(metal: Cluster, key: Path) -> None:
    argv = ssh_argv(metal, "gpu001", [])
    assert f'IdentityFile="{key}"' in argv
    assert "secret" not in " ".join(argv)


def test_a_command_comes_last_and_as_one_argument(metal: Cluster) -> None:
    assert ssh_argv(metal, "gpu001", ["echo", "a b"])[-1] == "echo 'a b'"


def test_without_a_name_a_login_node_is_chosen(own_places: Path, key: Path) -> None:
    cluster = _metal(own_places, key, LOGIN)
    assert "192.0.2.4" in ssh_argv(cluster, None, [])


def test_without_a_name_and_a_login_node_the_controller_is_chosen(metal: Cluster) -> None:
    assert "192.0.2.3" in ssh_argv(metal, None, [])


def test_an_unknown_node_is_refused_with_the_suggested_name(metal: Cluster) -> None:
    with pytest.raises(LifecycleError) as error:
        ssh_argv(metal, "gpu01", [])
    assert error.value.exit_code is Exit.USAGE
    assert error.value.diagnostics[0].hint == 'did you mean "gpu001"?'


def test_a_cluster_that_is_not_there_reports_how_to_bring_it_up(sample: SampleCluster) -> None:
    with pytest.raises(LifecycleError) as error:
        ssh_argv(sample.open(), None, [])
    assert error.value.diagnostics[0].hint == f"gcluster up {sample.path}"


@pytest.mark.parametrize("name", [None, "gpu001"])
def test_a_simulated_node_has_no_login(sample: SampleCluster, name: str | None) -> None:
    sample.up()
    with pytest.raises(LifecycleError, match="simulated"):
        ssh_argv(sample.open(), name, [])


def test_hosts_come_in_the_order_of_their_pools_and_names(metal: Cluster) -> None:
    assert [host.name for host in existing_hosts(metal).hosts] == ["gpu001", "gpu002", "head01"]
