"""An `up` on Google Cloud goes on after kills: the engine is a double, and so is Google.

The real provider, session, program and Automation API run; the double of the command `pulumi` makes
the calls that the Google provider would make, of tests/google_double. No machine boots.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest
import requests
from gcp_cases import spec_from
from tests.google_double.server import Project, serve
from tests.pulumi_double.install import PulumiDouble
from tests.stacks.ledger_double import RecordingLedger

from gcluster.stacks.gcp.api import Api, addresses
from gcluster.stacks.gcp.provider import GcpProvider
from gcluster.stacks.provider import ProviderError, SiteContext

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
SPEC = """\
apiVersion: gcluster/v1
name: lab
sites:
  west:
    provider: gcp
    project: acme-ml
    region: us-central1
    zone: us-central1-a
    network: {admin_cidrs: [192.0.2.0/24]}
pools:
  head: {site: west, role: controller}
  train: {site: west, machine: a3-highgpu-8g, count: {min: 1, max: 2}, fabric: ethernet}
scheduler: {type: slurm, partitions: {train: {pools: [train], default: true}}}
"""


class Machines:
    """A double of local nodes: nothing starts."""

    private = IPv4Network("10.0.0.0/16")

    def launch(self, *_: Any, **__: Any) -> None:
        """Start nothing."""

    def end(self, _: str) -> None:
        """End nothing."""


class Site:
    """A site of the doubles, and its provider."""

    def __init__(self, folder: Path, url: str, project: Project) -> None:
        self.project = project
        self.double = PulumiDouble(folder / "pulumi", cloud="google", endpoint=url)
        self.provider = GcpProvider(api=Api("acme-ml", login=requests.Session()))
        (folder / "work").mkdir(mode=0o700)
        self.context = SiteContext(
            spec=spec_from(SPEC),
            site="west",
            cluster_id="c0ffee",
            workdir=folder / "work",
            cache=folder,
            ledger=RecordingLedger(),
            emit=lambda _: None,
            state=f"file://{folder}/state",
            passphrase=lambda: "correct horse",
        )


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    project = Project(Machines())  # type: ignore[arg-type]  # what of Instances is used here
    server = serve(project)
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    ).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    monkeypatch.setenv("GOOGLE_COMPUTE_CUSTOM_ENDPOINT", f"{url}/compute/v1/")
    monkeypatch.setenv("GOOGLE_IAM_CUSTOM_ENDPOINT", f"{url}/v1/")
    made = Site(tmp_path, url, project)
    monkeypatch.setenv("PATH", str(made.double.bin), prepend=os.pathsep)
    yield made
    server.shutdown()
    server.server_close()
    gc.collect()


def test_what_has_a_name_of_its_own_and_was_not_written_down_is_taken_up(site: Site) -> None:
    assert addresses()["compute"].startswith("http://127.0.0.1:")
    made = ("IAMCustomRole", "RecordSet")
    site.double.plant(*({"moment": "made", "match": kind, "do": "kill"} for kind in made))
    while len(site.double.struck()) < len(made):  # made side by side, in any order
        with pytest.raises(ProviderError):
            site.provider.apply(site.context)
    site.provider.apply(site.context)
    kinds = [path.split("/")[-2] for path in site.project.things]
    assert (kinds.count("roles"), kinds.count("rrsets"), kinds.count("instances")) == (1, 1, 2)
    site.provider.destroy(site.context)
    assert site.project.existing() == []
