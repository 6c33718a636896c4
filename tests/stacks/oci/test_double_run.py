"""A site on OCI comes up and goes down in spite of kills: the engine is a double, and so is OCI.

The real provider, session, program and Automation API run; the double of the command `pulumi` makes
the calls that the OCI provider would make, of tests/oci_double. No machine boots: a console shows
what a test's node would.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from oci_cases import SITE, spec_of
from oci_double import LOGIN
from tests.oci_double.server import HOST_KEY, Tenancy, serve
from tests.pulumi_double.install import PulumiDouble
from tests.stacks.ledger_double import RecordingLedger

from gcluster.stacks.oci.api import Api
from gcluster.stacks.oci.provider import OciProvider
from gcluster.stacks.provider import ProviderError, SiteContext

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
_ALL = os.environ.get("GCLUSTER_ENGINE_DOUBLE") == "all"
KILLS = 10 if _ALL else 2
_LONG = ["natGateway:NatGateway", "vcn:Vcn", "SecurityRule", "instance:Instance::.*head"]
"""Only in the long run: parts of the network, and a machine by itself."""
TAKEN_UP = ["clusterNetwork:ClusterNetwork", *(_LONG if _ALL else ())]
NODES = ["head", "login", "train001", "train002"]


class Site:
    """A site of the doubles, and its provider."""

    def __init__(self, folder: Path, url: str, tenancy: Tenancy) -> None:
        self.tenancy = tenancy
        self.double = PulumiDouble(folder / "pulumi", cloud="oci", endpoint=url)
        self.provider = OciProvider(api=Api("us-ashburn-1", login=LOGIN))
        (folder / "work").mkdir(mode=0o700)
        spec = msgspec.structs.replace(spec_of("BM.GPU.B200.8"), storage={})
        self.context = SiteContext(
            spec=spec,
            site=SITE,
            cluster_id="c0ffee",
            workdir=folder / "work",
            cache=folder,
            ledger=RecordingLedger(),
            emit=lambda _: None,
            state=f"file://{folder}/state",
            passphrase=lambda: "correct horse",
        )

    def killed(self, verb: str, **fault: object) -> None:
        """Run a verb of the provider whose engine is killed at a moment."""
        self.double.plant({**fault, "do": "kill"})
        with pytest.raises(ProviderError):
            getattr(self.provider, verb)(self.context)

    def machines(self) -> list[str]:
        """Return what machines are paid for."""
        return [name for name in self.tenancy.existing() if name.startswith("ocid1.instance.")]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    tenancy = Tenancy()
    server = serve(tenancy)
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    ).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    names = ("core.ComputeClient", "core.ComputeManagementClient", "core.VirtualNetworkClient")
    hosts = ";".join(f"oci_{n}={url}" for n in (*names, "resource_search.ResourceSearchClient"))
    monkeypatch.setenv("CLIENT_HOST_OVERRIDES", hosts)
    made = Site(tmp_path, url, tenancy)
    monkeypatch.setenv("PATH", str(made.double.bin), prepend=os.pathsep)
    yield made
    server.shutdown()
    server.server_close()
    gc.collect()


def test_a_site_that_is_killed_over_and_over_comes_up_and_leaves_nothing(site: Site) -> None:
    for number in range(KILLS):
        site.killed("apply", number=6 + number * 2)
    site.provider.apply(site.context)
    hosts = {host.name: host for host in site.provider.hosts(site.context)}
    assert sorted(hosts) == NODES
    assert all(host.ssh.host_keys == (HOST_KEY,) for host in hosts.values())
    for _ in range(KILLS):
        site.killed("destroy", moment="deleted", number=3)
    site.provider.destroy(site.context)
    assert site.tenancy.existing() == []
    assert len(site.double.struck()) == 2 * KILLS


@pytest.mark.parametrize("what", TAKEN_UP)
def test_what_a_killed_run_made_and_did_not_write_down_is_taken_up(site: Site, what: str) -> None:
    """A second one would be left by `down`, which knows one of the two."""
    site.killed("apply", moment="made", match=what)
    made = set(site.tenancy.existing())
    site.provider.apply(site.context)
    assert made <= set(site.tenancy.existing())
    assert len(site.machines()) == len(NODES)
    site.provider.destroy(site.context)
    assert site.tenancy.existing() == []


def test_down_ends_machines_that_a_killed_run_made_and_did_not_write_down(site: Site) -> None:
    """Also where data loses its protection first: a stack so changed drops what was begun."""
    data = spec_of("BM.GPU.H100.8").storage["data"]
    spec = msgspec.structs.replace(site.context.spec, storage={"data": data})
    site.context = msgspec.structs.replace(site.context, spec=spec, delete_data=frozenset({"data"}))
    site.killed("apply", moment="made", match="ClusterNetwork")
    site.provider.destroy(site.context)
    assert site.tenancy.existing() == []
