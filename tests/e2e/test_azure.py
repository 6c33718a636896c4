"""A whole `up` on Azure without Azure: the command as a user runs it, against doubles.

The engine is the double of the command `pulumi`; a double of Azure Resource Manager
(tests/azure_double, which checks what is created against models of the interfaces) simulates Azure,
and local nodes the machines: a real cloud-init takes their custom data, and run-command runs in
them and returns their host keys. The ND machines are simulated, by a catalog of the spec's own: no
GPU and no InfiniBand are there, and the certificate says so. Machines are reached from outside only
by a public address; more of security groups is not simulated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.azure_double.addresses import SUBSCRIPTION
from tests.azure_double.process import AzureProcess
from tests.pulumi_double.install import PulumiDouble

from .cloud_double import CloudDouble
from .conftest import LiveCluster

pytestmark = [pytest.mark.local, pytest.mark.azure_up]

SPEC = (
    """\
apiVersion: gcluster/v1
name: {name}
owner: ops@example.edu
catalog: [machines.yaml]
sites:
  east:
    provider: azure
    subscription: SUBSCRIPTION
    region: eastus
    image: Debian:debian-13:13-gen2:latest
    network: {{cidr: {private}, admin_cidrs: [192.0.2.0/24]}}
pools:
  head: {{site: east, role: controller}}
  door: {{site: east, role: login, public_address: true}}
  train: {{site: east, machine: Standard_ND96isr_H100_v5, count: 3}}
"""
).replace("SUBSCRIPTION", SUBSCRIPTION)
MACHINE, SCALE_SET = "compute:VirtualMachine::.*", "compute:VirtualMachineScaleSet::.*"
"""Type and name, as faults match them."""


class Azure(CloudDouble):
    """The cluster, and the doubles that it comes up on."""

    def __init__(self, live: LiveCluster, folder: Path) -> None:
        """Start Azure's double and write the spec."""
        super().__init__(live, folder, "azure")
        self.cloud = AzureProcess(folder / "azure", self.given)
        engine = PulumiDouble(
            folder / "pulumi", cloud="azure", endpoint=self.cloud.url,
            certificate=str(self.cloud.certificate),
        )  # fmt: skip
        machine = "azure/Standard_ND96isr_H100_v5"
        self.write(SPEC, machine, engine, **self.cloud.environment())


@pytest.fixture(scope="module")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azure]:
    """Give the doubles, and remove them and all machines whatever happens."""
    folder = tmp_path_factory.mktemp("azure")
    with Azure(LiveCluster(folder), folder) as made:
        yield made


def test_up_that_is_killed_ten_times_comes_to_a_passed_allreduce(azure: Azure) -> None:
    azure.killed_by_engine(
        "up",
        {"moment": "made", "match": "network:Subnet::.*egress"},
        {"moment": "made", "match": SCALE_SET + "train"},
        {"match": MACHINE + "door"},
        {"moment": "made", "match": MACHINE + "head"},
    )
    azure.comes_up_in_spite_of_kills()
    existing = Counter(path.split("/")[-2] for path in azure.existing())
    assert (existing["virtualMachines"], existing["virtualMachineScaleSets"]) == (2, 1)
    assert (existing["virtualNetworks"], existing["natGateways"]) == (1, 1)


def test_the_certificate_reports_that_gpus_and_transport_are_simulated(azure: Azure) -> None:
    azure.check_certificate_is_simulated()


def test_a_private_node_is_reached_through_the_public_one_only(azure: Azure) -> None:
    assert azure.live.on("train001", "hostname; whoami").split() == ["train001", "azureuser"]


def test_down_that_is_killed_twice_leaves_nothing_and_no_machine(azure: Azure) -> None:
    azure.goes_down_in_spite_of_kills()
