"""One small cluster for each provider, under a name nobody else uses."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from gcluster.schemas.spec import (
    AwsSite,
    AzureSite,
    BareMetalSite,
    ClusterSpec,
    GcpSite,
    LocalSite,
    Pool,
    SimulatedSite,
    Site,
    SlurmScheduler,
    Ssh,
)
from gcluster.stacks.provider import Provider, SiteContext, SiteEvent
from gcluster.stacks.registry import provider

from .ledger_double import RecordingLedger

SITE = "here"
_CLOUDS: dict[str, tuple[Site, str, str]] = {
    "aws": (AwsSite(region="us-east-1", zone_id="use1-az4"), "m7i.4xlarge", "p5.48xlarge"),
    "azure": (
        AzureSite(subscription="00000000-0000-0000-0000-000000000000", region="eastus"),
        "Standard_D16s_v5",
        "Standard_ND96isr_H100_v5",
    ),
    "gcp": (
        GcpSite(project="acme-ml", region="us-central1", zone_name="us-central1-a"),
        "n2-standard-16",
        "a3-megagpu-8g",
    ),
}
"""Site, controller's and nodes' machine type. Their programs are recorded; applying them needs
Pulumi's engine and an account, so the tests that apply leave them out."""
CLOUDS = frozenset(_CLOUDS)


class Trial:
    """One cluster of one provider, with everything its calls take."""

    def __init__(self, kind: str, folder: Path) -> None:
        """Prepare; nothing is made."""
        self.provider: Provider = provider(kind)
        self.ledger = RecordingLedger()
        self.events: list[SiteEvent] = []
        self.context = SiteContext(
            spec=_spec(kind),
            site=SITE,
            cluster_id=secrets.token_hex(4),
            workdir=folder / secrets.token_hex(4),
            cache=folder,
            ledger=self.ledger,
            emit=self.events.append,
        )
        self.context.workdir.mkdir(mode=0o700)

    def with_count(self, count: int) -> SiteContext:
        """Return the context of the same cluster with another number of gpu nodes."""
        pools = dict(self.context.spec.pools)
        pools["gpu"] = msgspec.structs.replace(pools["gpu"], count=count)
        spec = msgspec.structs.replace(self.context.spec, pools=pools)
        return msgspec.structs.replace(self.context, spec=spec)

    def ids(self) -> set[str]:
        """Return the provider's ids of all that exists."""
        return {item.provider_id for item in self.provider.refresh(self.context)}


def _spec(kind: str) -> ClusterSpec:
    pools = {
        "head": Pool(site=SITE, role="controller"),
        "gpu": Pool(site=SITE, machine="sim.h100x8", count=2),
    }
    if kind == "bare-metal":
        pools = {
            "head": Pool(site=SITE, role="controller", hosts="head01"),
            "gpu": Pool(site=SITE, machine="hgx-h100-8", hosts="gpu[001-002]"),
        }
    if kind in CLOUDS:
        _, head, nodes = _CLOUDS[kind]
        pools = {
            "head": Pool(site=SITE, role="controller", machine=head),
            "gpu": Pool(site=SITE, machine=nodes, count=2),
        }
    sites: dict[str, Site] = {
        "bare-metal": BareMetalSite(ssh=Ssh(user="ops")),
        "local": LocalSite(),
        "simulated": SimulatedSite(),
        **{cloud: site for cloud, (site, _, _) in _CLOUDS.items()},
    }
    return ClusterSpec(
        api_version="gcluster/v1",
        name=f"contract-{secrets.token_hex(3)}",
        sites={SITE: sites[kind]},
        pools=pools,
        scheduler=SlurmScheduler(),
    )


class Trials:
    """Makes trials, and takes all of them down at the end, whatever happened."""

    def __init__(self, folder: Path) -> None:
        """Hold the folder."""
        self._folder = folder
        self._made: list[Trial] = []

    def new(self, kind: str) -> Trial:
        """Return a new cluster; nothing is made."""
        self._made.append(Trial(kind, self._folder))
        return self._made[-1]

    def end(self) -> None:
        """Destroy everything that was made."""
        for trial in self._made:
            if trial.provider.name not in CLOUDS:
                trial.provider.destroy(trial.context)


@pytest.fixture
def trials(tmp_path: Path) -> Iterator[Trials]:
    """Give clusters that are gone after the test."""
    made = Trials(tmp_path)
    yield made
    made.end()
