"""A site on AWS comes up and goes down: the engine is a double, and moto server simulates AWS.

The real provider, session, program and Automation API run; the double of the command `pulumi` makes
the calls that the AWS provider would make, and moto (extended: tests/pulumi_double/moto_server)
takes them. No machine boots: the test writes what a node's console would show.
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.pulumi_double.install import PulumiDouble
from tests.pulumi_double.moto_process import MotoProcess
from tests.stacks.ledger_double import RecordingLedger

from gcluster.stacks.aws.api import Api
from gcluster.stacks.aws.provider import AwsProvider
from gcluster.stacks.io.ssh import BEGIN, END
from gcluster.stacks.provider import ProviderError, SiteContext

from .conftest import BASE, spec_of

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHmRn4kLqrT2jXg0o9cYbqkZ0WzT8hYp3vVd5s1nC7eQ"
KILLS = 10 if os.environ.get("GCLUSTER_ENGINE_DOUBLE") == "all" else 2
SPEC = BASE.replace(
    "  train: {site: east, machine: p5.48xlarge, count: 2}",
    "  door: {site: east, role: login, machine: m7i.xlarge, public_address: true}\n"
    "  train: {site: east, machine: p5.48xlarge, count: 3, fabric: efa-v2}",
)


@pytest.fixture
def moto(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MotoProcess]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    server = MotoProcess(tmp_path / "moto")
    yield server
    server.end()
    gc.collect()


@pytest.fixture
def double(moto: MotoProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PulumiDouble:
    made = PulumiDouble(tmp_path / "pulumi", cloud="moto", endpoint=moto.url, region=moto.region)
    monkeypatch.setenv("PATH", str(made.bin), prepend=os.pathsep)
    return made


@pytest.fixture
def context(tmp_path: Path) -> SiteContext:
    (tmp_path / "work").mkdir(mode=0o700)
    return SiteContext(
        spec=spec_of(SPEC),
        site="east",
        cluster_id="c0ffee",
        workdir=tmp_path / "work",
        cache=tmp_path,
        ledger=RecordingLedger(),
        emit=lambda _: None,
        state=f"file://{tmp_path}/state",
        passphrase=lambda: "correct horse",
    )


def boot(moto: MotoProcess) -> None:
    """Let each machine that was launched show its host key."""
    for file in (moto.folder / "launched").iterdir():
        console = f"[  12.3] cloud-init: {BEGIN}\n{KEY}\n{END}\n"
        (moto.folder / "consoles" / json.loads(file.read_text())["id"]).write_text(console)


def test_a_site_that_is_killed_over_and_over_comes_up_and_leaves_nothing(
    moto: MotoProcess, double: PulumiDouble, context: SiteContext
) -> None:
    provider = AwsProvider(api=Api("us-east-1", endpoint_url=moto.url))
    before = moto.existing()
    for number in range(KILLS):
        double.plant({"number": 6 + number * 4, "do": "kill"})
        with pytest.raises(ProviderError):
            provider.apply(context)
    provider.apply(context)
    boot(moto)
    hosts = {host.name: host for host in provider.hosts(context)}
    assert sorted(hosts) == ["door", "head", "train001", "train002", "train003"]
    assert {host.machine for host in hosts.values()} == {"m7i.4xlarge", "m7i.xlarge", "p5.48xlarge"}
    assert all(host.ssh.host_keys == (KEY,) for host in hosts.values())
    assert all(host.address.startswith("10.40.") for host in hosts.values())
    assert hosts["door"].public_address
    bastion = hosts["train001"].ssh.bastion
    assert bastion is not None
    assert bastion.endswith(hosts["door"].public_address)
    assert len(provider.machine_ids(context)) == 5
    for _ in range(KILLS):
        double.plant({"moment": "deleted", "number": 3, "do": "kill"})
        with pytest.raises(ProviderError):
            provider.destroy(context)
    provider.destroy(context)
    assert len(double.struck()) == 2 * KILLS
    assert moto.existing() == before
    assert [left for left in provider.sweep(context) if not left.kept_data] == []


def test_a_machine_that_a_killed_run_made_and_did_not_write_down_is_there_once(
    moto: MotoProcess, double: PulumiDouble, context: SiteContext
) -> None:
    provider = AwsProvider(api=Api("us-east-1", endpoint_url=moto.url))
    made = {"moment": "made", "match": "ec2/instance:Instance::.*train002", "do": "kill"}
    double.plant(made)
    with pytest.raises(ProviderError):
        provider.apply(context)
    provider.apply(context)
    machines = [line for line in moto.existing() if line.startswith("InstanceId")]
    assert len(machines) == 5
    assert {f"InstanceId {one}" for one in provider.machine_ids(context).values()} == set(machines)


def test_down_ends_a_machine_that_a_killed_run_made_and_did_not_write_down(
    moto: MotoProcess, double: PulumiDouble, context: SiteContext
) -> None:
    provider = AwsProvider(api=Api("us-east-1", endpoint_url=moto.url))
    before = moto.existing()
    double.plant({"moment": "made", "match": "ec2/instance:Instance::.*head", "do": "kill"})
    with pytest.raises(ProviderError):
        provider.apply(context)
    provider.destroy(context)
    assert moto.existing() == before


def test_a_machine_that_is_made_again_has_its_template_as_it_is_wanted_now(
    moto: MotoProcess, double: PulumiDouble, context: SiteContext
) -> None:
    del double
    provider = AwsProvider(api=Api("us-east-1", endpoint_url=moto.url))

    def launched() -> dict[str, tuple[str, str]]:
        """Return node -> id and version of the template that it was launched from."""
        found = {}
        for resource, machine in provider.machine_ids(context).items():
            of = json.loads((moto.folder / "launched" / machine).read_text())["template"]
            found[resource.removeprefix("demo-east-")] = (of["LaunchTemplateId"], of["Version"])
        return found

    bought = SPEC.replace(
        "count: 3, fabric: efa-v2", "count: 2, market: [on-demand, spot], fabric: ethernet"
    )
    context = msgspec.structs.replace(context, spec=spec_of(bought))
    provider.apply(context)
    first = launched()
    assert first["train001"] == first["train002"]
    template = first["train001"][0]
    labelled = bought.replace("count: 2,", "count: 2, tags: {team: nlp},")
    context = msgspec.structs.replace(context, spec=spec_of(labelled))
    provider.apply(context)
    assert launched() == first  # a new version is for new machines
    provider.replace(context, ["train001"])
    assert launched() == first | {"train001": (template, "2")}
    context = msgspec.structs.replace(context, purchased={"train002": "spot-use1-az4"})
    provider.apply(context)
    moved = launched()
    assert moved["train002"][0] != template
    assert moved == first | {"train001": (template, "2"), "train002": moved["train002"]}
