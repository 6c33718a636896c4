"""A whole `up` on OCI without OCI: the command as a user runs it, against doubles of the cloud.

The engine is the double of the command `pulumi`; a double of OCI (tests/oci_double, which checks
each request against OCI's own SDK) simulates OCI, and local nodes the machines: a real cloud-init
takes the user data of launches, and host keys are read from console histories. The BM.GPU.H100.8
come as a cluster network and are named afterwards. They are simulated, by a catalog of the spec's
own: no GPU and no RDMA are there, and the certificate says so. Machines are reached from outside
only by a public address; more of security groups is not simulated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.oci_double.process import OciProcess
from tests.pulumi_double.install import PulumiDouble

from .cloud_double import CloudDouble
from .conftest import LiveCluster

pytestmark = [pytest.mark.local, pytest.mark.oci_up]

SPEC = """\
apiVersion: gcluster/v1
name: {name}
owner: ops@example.edu
catalog: [machines.yaml]
sites:
  ashburn:
    provider: oci
    tenancy: ocid1.tenancy.oc1..double
    compartment: ocid1.compartment.oc1..double
    region: us-ashburn-1
    image: ocid1.image.oc1.iad.debian13
    network: {{cidr: {private}, admin_cidrs: [192.0.2.0/24]}}
pools:
  head: {{site: ashburn, role: controller}}
  door: {{site: ashburn, role: login, public_address: true}}
  train: {{site: ashburn, machine: BM.GPU.H100.8, count: 3}}
"""
INSTANCE = "instance:Instance::.*"
"""Type and name, as faults match them."""


class Oracle(CloudDouble):
    """The cluster, and the doubles that it comes up on."""

    def __init__(self, live: LiveCluster, folder: Path) -> None:
        """Start OCI's double and write the spec."""
        super().__init__(live, folder, "oci")
        self.cloud = OciProcess(folder / "oci", self.given)
        engine = PulumiDouble(folder / "pulumi", cloud="oci", endpoint=self.cloud.url)
        self.write(SPEC, "oci/BM.GPU.H100.8", engine, **self.cloud.environment())


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oracle]:
    """Give the doubles, and remove them and all machines whatever happens."""
    folder = tmp_path_factory.mktemp("oci")
    with Oracle(LiveCluster(folder), folder) as made:
        yield made


def test_up_that_is_killed_ten_times_comes_to_a_passed_allreduce(oracle: Oracle) -> None:
    oracle.killed_by_engine(
        "up",
        {"number": 6},
        {"match": INSTANCE + "door"},
        {"moment": "made", "match": INSTANCE + "head"},
        {"moment": "made", "match": "ClusterNetwork"},
    )
    oracle.comes_up_in_spite_of_kills()
    existing = Counter(name.split(".")[1] for name in oracle.existing())
    assert (existing["instance"], existing["clusternetwork"], existing["vcn"]) == (5, 1, 1)


def test_the_certificate_reports_that_gpus_and_transport_are_simulated(oracle: Oracle) -> None:
    oracle.check_certificate_is_simulated()


def test_a_private_node_is_reached_through_the_public_one_only(oracle: Oracle) -> None:
    assert oracle.live.on("train001", "hostname; whoami").split() == ["train001", "debian"]


def test_down_that_is_killed_twice_leaves_nothing_and_no_machine(oracle: Oracle) -> None:
    oracle.goes_down_in_spite_of_kills()
