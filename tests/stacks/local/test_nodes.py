"""Real containers: keys, repair, namesakes, and images baked from a node."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import msgspec
import pytest
from tests.stacks.conftest import SampleCluster, SampleSites

from gcluster.inventory.hosts import Host
from gcluster.stacks.local.engine import find_engine
from gcluster.stacks.local.image.base_image import node_reference
from gcluster.stacks.local.provider import LocalProvider
from gcluster.stacks.provider import ProviderError

pytestmark = pytest.mark.local


def _ssh(host: Host, folder: Path, command: str) -> str:
    """Run a command as the user would, with nothing but the pinned key trusted."""
    known = folder / "known_hosts"
    known.write_text("".join(f"{host.address} {key}\n" for key in host.ssh.host_keys))
    options = (
        *("-F", "none", "-i", str(host.ssh.key_file), "-o", "BatchMode=yes"),
        *("-o", f"UserKnownHostsFile={known}", "-o", "StrictHostKeyChecking=yes"),
    )
    done = subprocess.run(
        ["ssh", *options, f"root@{host.address}", command],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.strip()


def _effects(sample: SampleCluster) -> dict[str, str]:
    changes = sample.provider.preview(sample.context)
    return {c.resource.name: c.effect for c in changes if c.effect != "keep"}


def test_a_node_is_reached_over_ssh_with_its_own_pinned_key(
    samples: SampleSites, tmp_path: Path
) -> None:
    sample = samples.new("local")
    sample.provider.apply(sample.context)
    hosts = sample.provider.hosts(sample.context)
    keys = [key for host in hosts for key in host.ssh.host_keys]
    assert len(set(keys)) == len(hosts)
    assert [_ssh(host, tmp_path, "hostname") for host in hosts] == [h.name for h in hosts]
    names = " ".join(h.name for h in hosts)
    resolved = _ssh(hosts[0], tmp_path, f"for n in {names}; do getent ahostsv4 $n; done")
    assert {line.split()[0] for line in resolved.splitlines()} == {h.address for h in hosts}
    assert _ssh(hosts[0], tmp_path, "systemctl is-system-running --wait") == "running"
    key_file = hosts[0].ssh.key_file
    assert key_file is not None
    assert stat.S_IMODE((tmp_path / key_file).stat().st_mode) == 0o600


def test_a_killed_node_is_started_and_a_removed_one_recreated_at_its_address(
    samples: SampleSites,
) -> None:
    sample = samples.new("local")
    sample.provider.apply(sample.context)
    before = {h.name: h for h in sample.provider.hosts(sample.context)}
    name = sample.context.spec.name
    engine = find_engine()
    card = engine.call("exec", f"gcluster-{name}-gpu002", "cat", "/sys/class/net/eth0/address")
    engine.call("kill", f"gcluster-{name}-gpu001")
    engine.call("rm", "--force", "--time", "0", f"gcluster-{name}-gpu002")
    assert _effects(sample) == {"gpu001": "update", "gpu002": "create"}
    sample.provider.apply(sample.context)
    after = {h.name: h for h in sample.provider.hosts(sample.context)}
    assert {n: h.address for n, h in after.items()} == {n: h.address for n, h in before.items()}
    assert after["gpu001"].ssh == before["gpu001"].ssh
    # A client that has connected to the one that was removed finds its successor at once.
    again = engine.call("exec", f"gcluster-{name}-gpu002", "cat", "/sys/class/net/eth0/address")
    assert again == card
    assert after["gpu002"].ssh.host_keys != before["gpu002"].ssh.host_keys
    assert _effects(sample) == {}
    assert set(sample.ledger.existing.values()) == sample.ids()


def test_a_cluster_of_the_same_name_is_refused_and_never_touched(samples: SampleSites) -> None:
    sample = samples.new("local")
    sample.provider.apply(sample.context)
    before = sample.ids()
    workdir = sample.context.workdir.with_name("namesake")
    workdir.mkdir()
    namesake = msgspec.structs.replace(sample.context, cluster_id="another", workdir=workdir)
    assert [d.code for d in sample.provider.preflight(namesake)] == ["GC916"]
    with pytest.raises(ProviderError, match="another cluster is called"):
        sample.provider.apply(namesake)
    sample.provider.destroy(namesake)
    assert sample.ids() == before
    assert _effects(sample) == {}


def test_an_image_baked_from_a_node_carries_its_files_but_not_its_identity(
    samples: SampleSites, tmp_path: Path
) -> None:
    sample, provider = samples.new("local"), LocalProvider()
    key = f"{sample.context.cluster_id * 2}-test"
    builder = provider.start_builder(sample.context, key)
    try:
        machine_id = _ssh(builder, tmp_path, "touch /opt/baked; cat /etc/machine-id")
        provider.commit_builder(sample.context, key)
        assert provider.has_image(sample.context, key)
        assert sample.ids() == set()
        assert list(sample.context.workdir.iterdir()) == []
        baked = msgspec.structs.replace(sample.context, image=key)
        provider.apply(baked)
        hosts = provider.hosts(baked)
        look = "cat /etc/machine-id; ls /opt; wc -l < /root/.ssh/authorized_keys"
        answer = [_ssh(host, tmp_path, look).split() for host in hosts]
        assert {host.image for host in hosts} == {key}
        assert {tuple(rest) for _, *rest in answer} == {("baked", "1")}
        assert len({identity for identity, *_ in answer} | {machine_id}) == len(hosts) + 1
        keys = {host.ssh.host_keys for host in hosts}
        assert len(keys | {builder.ssh.host_keys}) == len(hosts) + 1
    finally:
        provider.discard_builder(sample.context, key)
        provider.destroy(sample.context)
        find_engine().call("rmi", "--ignore", node_reference(key))
