"""A whole `up` on AWS without AWS: the command as a user runs it, against doubles of the cloud.

The engine is the double of the command `pulumi`, moto server simulates AWS, and local nodes the
machines: a real cloud-init takes the user data of the launch template, and host keys are read from
real consoles. The p5s are simulated, by a catalog of the spec's own: no GPU and no EFA are there,
and the certificate says so. Machines are reached from outside only by a public address; more of
security groups is not simulated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.pulumi_double.install import PulumiDouble
from tests.pulumi_double.moto_process import MotoProcess

from .cloud_double import CloudDouble
from .conftest import LiveCluster

pytestmark = [pytest.mark.local, pytest.mark.aws_up]

SPEC = """\
apiVersion: gcluster/v1
name: {name}
owner: ops@example.edu
catalog: [machines.yaml]
sites:
  east:
    provider: aws
    region: us-east-1
    zone_id: use1-az4
    image: ami-1e749f67
    network: {{cidr: {private}, admin_cidrs: [192.0.2.0/24]}}
pools:
  head: {{site: east, role: controller}}
  door: {{site: east, role: login, public_address: true}}
  train: {{site: east, machine: p5.48xlarge, count: 3}}
"""


class Amazon(CloudDouble):
    """The cluster, and the doubles that it comes up on."""

    def __init__(self, live: LiveCluster, folder: Path) -> None:
        """Start AWS' double and write the spec."""
        super().__init__(live, folder, "aws")
        self.cloud = MotoProcess(folder / "moto", nodes=self.given)
        url, region = self.cloud.url, self.cloud.region
        engine = PulumiDouble(folder / "pulumi", cloud="moto", endpoint=url, region=region)
        login = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
        self.write(SPEC, "aws/p5.48xlarge", engine, AWS_ENDPOINT_URL=url, **login)


@pytest.fixture(scope="module")
def amazon(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch_module: pytest.MonkeyPatch
) -> Iterator[Amazon]:
    """Give the doubles, and remove them and all machines whatever happens."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch_module.setenv(name, "testing")
    folder = tmp_path_factory.mktemp("aws")
    with Amazon(LiveCluster(folder), folder) as made:
        yield made


@pytest.fixture(scope="module")
def monkeypatch_module() -> Iterator[pytest.MonkeyPatch]:
    """Give a monkeypatch for the whole module."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch


INSTANCE = "instance:Instance::.*"
"""Type and name, as faults match them."""


def test_up_that_is_killed_ten_times_comes_to_a_passed_allreduce(amazon: Amazon) -> None:
    amazon.killed_by_engine(
        "up",
        {"number": 6},
        {"number": 17},
        {"match": INSTANCE + "door"},
        {"moment": "made", "match": INSTANCE + "train002"},
    )
    amazon.comes_up_in_spite_of_kills()
    existing = Counter(line.split()[0] for line in amazon.existing())
    assert (existing["InstanceId"], existing["VpcId"], existing["NatGatewayId"]) == (5, 1, 1)


def test_the_certificate_reports_that_gpus_and_transport_are_simulated(amazon: Amazon) -> None:
    amazon.check_certificate_is_simulated()


def test_a_private_node_is_reached_through_the_public_one_only(amazon: Amazon) -> None:
    output = amazon.live.on("train001", "hostname; whoami").split()
    assert output == ["train001", "admin"]


def test_down_that_is_killed_twice_leaves_nothing_and_no_machine(amazon: Amazon) -> None:
    amazon.goes_down_in_spite_of_kills()
