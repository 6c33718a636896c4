"""A site on Azure comes up and goes down: the engine is a double, and so is Azure.

The real provider, session, program, Automation API and SDK run; the double of the command `pulumi`
makes the calls that the engine's provider would make, and a double of Azure Resource Manager
(tests/azure_double) takes them. No machine boots.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.azure_double.addresses import SUBSCRIPTION
from tests.azure_double.machines import KEY
from tests.azure_double.process import AzureProcess
from tests.pulumi_double.install import PulumiDouble
from tests.stacks.ledger_double import RecordingLedger

from gcluster.stacks.azure.provider import AzureProvider
from gcluster.stacks.provider import ProviderError, SiteContext

from .recorded_cases import parsed

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
SPEC = f"""\
apiVersion: gcluster/v1
name: research
sites:
  east:
    provider: azure
    subscription: {SUBSCRIPTION}
    region: eastus
    network: {{cidr: 10.60.0.0/16, admin_cidrs: [192.0.2.0/24]}}
pools:
  head: {{site: east, role: controller}}
  door: {{site: east, role: login, public_address: true}}
  train: {{site: east, machine: Standard_ND96isr_H100_v5, count: 3}}
scheduler: {{type: slurm, partitions: {{train: {{pools: [train], default: true}}}}}}
"""


@pytest.fixture
def azure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AzureProcess]:
    server = AzureProcess(tmp_path / "azure")
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    yield server
    server.end()
    gc.collect()


@pytest.fixture
def double(azure: AzureProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PulumiDouble:
    made = PulumiDouble(
        tmp_path / "pulumi", cloud="azure", endpoint=azure.url, certificate=str(azure.certificate)
    )
    monkeypatch.setenv("PATH", str(made.bin), prepend=os.pathsep)
    return made


@pytest.fixture
def context(tmp_path: Path) -> SiteContext:
    (tmp_path / "work").mkdir(mode=0o700)
    return SiteContext(
        spec=parsed(SPEC),
        site="east",
        cluster_id="c0ffee",
        workdir=tmp_path / "work",
        cache=tmp_path,
        ledger=RecordingLedger(),
        emit=lambda _: None,
        state=f"file://{tmp_path}/state",
        passphrase=lambda: "correct horse",
    )


def machines(azure: AzureProcess) -> list[str]:
    """Return the kinds of machines and scale sets that exist."""
    kinds = [path.split("/")[-2] for path in azure.existing()]
    return sorted(kind for kind in kinds if kind.startswith("virtualMachine"))


def test_what_a_killed_run_made_and_did_not_write_down_is_there_once_and_goes(
    azure: AzureProcess, double: PulumiDouble, context: SiteContext
) -> None:
    provider = AzureProvider()
    made = (
        "network:Subnet::.*egress", "compute:VirtualMachineScaleSet::",
        "compute:VirtualMachine::.*head",
    )  # fmt: skip
    double.plant(*({"moment": "made", "match": name, "do": "kill"} for name in made))
    while len(double.struck()) < len(made):  # what is made side by side may come in any order
        with pytest.raises(ProviderError):
            provider.apply(context)
    provider.apply(context)
    assert machines(azure) == [
        "virtualMachineScaleSets", "virtualMachines", "virtualMachines",
    ]  # fmt: skip
    hosts = {host.name: host for host in provider.hosts(context)}
    assert sorted(hosts) == ["door", "head", "train001", "train002", "train003"]
    assert all(host.ssh.host_keys == (KEY,) for host in hosts.values())
    bastion = hosts["train001"].ssh.bastion
    assert bastion is not None
    assert bastion.endswith(hosts["door"].public_address)
    double.plant({"moment": "deleted", "number": 3, "do": "kill"})
    with pytest.raises(ProviderError):
        provider.destroy(context)
    provider.destroy(context)
    assert azure.existing() == []


def test_down_takes_away_what_a_killed_run_made_and_did_not_write_down(
    azure: AzureProcess, double: PulumiDouble, context: SiteContext
) -> None:
    provider = AzureProvider()
    double.plant({"moment": "made", "match": "compute:VirtualMachineScaleSet::", "do": "kill"})
    with pytest.raises(ProviderError):
        provider.apply(context)
    assert machines(azure) == ["virtualMachineScaleSets"]
    provider.destroy(context)
    assert azure.existing() == []
