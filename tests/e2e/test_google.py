"""A whole `up` on Google Cloud without Google: the command as a user runs it, against doubles.

The engine is the double of the command `pulumi`; a double of Google's services
(tests/google_double, which checks each request against Google's discovery documents) simulates
Google, and local nodes the machines: the start-up script runs in them and publishes host keys as
guest attributes. The a3-megagpus are simulated, by a catalog of the spec's own: no GPU and no TCPXO
are there, and the certificate says so. Machines are reached from outside only by a public address;
more of firewalls is not simulated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.google_double.process import GoogleProcess
from tests.pulumi_double.install import PulumiDouble

from .cloud_double import CloudDouble
from .conftest import LiveCluster

pytestmark = [pytest.mark.local, pytest.mark.gcp_up]

SPEC = """\
apiVersion: gcluster/v1
name: {name}
owner: ops@example.edu
catalog: [machines.yaml]
sites:
  central:
    provider: gcp
    project: double
    region: us-central1
    zone: us-central1-a
    image: projects/debian-cloud/global/images/family/debian-13
    network: {{cidr: {private}, admin_cidrs: [192.0.2.0/24]}}
pools:
  head: {{site: central, role: controller}}
  door: {{site: central, role: login, public_address: true}}
  train: {{site: central, machine: a3-megagpu-8g, count: 3}}
"""
INSTANCE = "InstanceFromTemplate::.*"
"""Type and name, as faults match them."""


class Google(CloudDouble):
    """The cluster, and the doubles that it comes up on."""

    def __init__(self, live: LiveCluster, folder: Path) -> None:
        """Start Google's double and write the spec."""
        super().__init__(live, folder, "gcp")
        self.cloud = GoogleProcess(folder / "google", self.given)
        engine = PulumiDouble(folder / "pulumi", cloud="google", endpoint=self.cloud.url)
        self.write(SPEC, "gcp/a3-megagpu-8g", engine, **self.cloud.environment())


@pytest.fixture(scope="module")
def google(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Google]:
    """Give the doubles, and remove them and all machines whatever happens."""
    folder = tmp_path_factory.mktemp("google")
    with Google(LiveCluster(folder), folder) as made:
        yield made


def test_up_that_is_killed_ten_times_comes_to_a_passed_allreduce(google: Google) -> None:
    google.killed_by_engine(
        "up",
        {"number": 6},
        {"moment": "made", "match": "Account::"},
        {"match": INSTANCE + "door"},
        {"moment": "made", "match": INSTANCE + "train002"},
    )
    google.comes_up_in_spite_of_kills()
    existing = Counter(path.split("/")[-2] for path in google.existing() if path[0] == "c")
    assert (existing["instances"], existing["networks"], existing["routers"]) == (5, 9, 1)


def test_the_certificate_reports_that_gpus_and_transport_are_simulated(google: Google) -> None:
    google.check_certificate_is_simulated()


def test_a_private_node_is_reached_through_the_public_one_only(google: Google) -> None:
    assert google.live.on("train001", "hostname; whoami").split() == ["train001", "gcluster"]


def test_down_that_is_killed_twice_leaves_nothing_and_no_machine(google: Google) -> None:
    google.goes_down_in_spite_of_kills()
