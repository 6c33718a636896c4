"""One small cluster for each provider, under a name of its own."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from gcluster.schemas.load import load
from gcluster.schemas.spec import ClusterSpec
from gcluster.stacks.provider import Provider, SiteContext, SiteEvent
from gcluster.stacks.registry import clouds, provider

from .ledger_double import RecordingLedger

SITE = "here"
CLOUDS = frozenset(clouds())
"""Their programs are recorded; the tests that apply leave them out: that needs an engine and an
account."""
_CASES = Path(__file__).parent.parent / "cases" / "stacks" / "contract"
"""A small cluster for each provider: site "here", pools head and gpu."""


class SampleCluster:
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
    loaded = load(_CASES / f"{kind}.yaml")
    assert loaded.spec is not None, loaded.diagnostics
    return msgspec.structs.replace(loaded.spec, name=f"contract-{secrets.token_hex(3)}")


class SampleSites:
    """Makes sites, and takes all of them down at the end, whatever happened."""

    def __init__(self, folder: Path) -> None:
        """Hold the folder."""
        self._folder = folder
        self._made: list[SampleCluster] = []

    def new(self, kind: str) -> SampleCluster:
        """Return a new cluster; nothing is made."""
        self._made.append(SampleCluster(kind, self._folder))
        return self._made[-1]

    def end(self) -> None:
        """Destroy everything that was made."""
        for sample in self._made:
            if sample.provider.name not in CLOUDS:
                sample.provider.destroy(sample.context)


@pytest.fixture
def samples(tmp_path: Path) -> Iterator[SampleSites]:
    """Give clusters that are gone after the test."""
    made = SampleSites(tmp_path)
    yield made
    made.end()
