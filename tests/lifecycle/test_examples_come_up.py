"""Each example comes up and goes down by the lifecycle, on doubles of its machines.

Names, options and prices are those of the site's own provider; its machines are a file, and what
would be installed is compiled and stamped, not run. The clouds' programs run through the engine's
double in tests/stacks/pulumi/test_double_run.py, whole runs on doubles are in tests/e2e.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from pyrage import x25519

from gcluster.inventory.hosts import Host
from gcluster.lifecycle.cluster import sites
from gcluster.lifecycle.cluster.cluster import Cluster
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.down.down import down
from gcluster.lifecycle.up.up import up
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load
from gcluster.schemas.spec import ClusterSpec, FileService, LustreStorage
from gcluster.schemas.spec.software import SourceRedirect
from gcluster.stacks.provider import Provider, Resource, SiteContext, SiteOutputs
from gcluster.stacks.pulumi.plan import volume_plans
from gcluster.stacks.registry import clouds, provider

from .cloud_double import CloudDouble

EXAMPLES = [
    path
    for path in sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
    if "apiVersion: gcluster/v1\n" in path.read_text(encoding="utf-8")
]


BUNDLED_FIRST = {"kubernetes-h200"}
"""Charts have digests once they are bundled: until then `up` refuses, and says so."""


def completed(spec: ClusterSpec) -> ClusterSpec:
    """Return a spec with what only its user knows: fingerprints of vendors' keys."""
    unsaid = {name for name, s in load_catalog().sources.items() if not s.key_fingerprint}
    answer = {name: SourceRedirect(key_fingerprint="0" * 40) for name in unsaid}
    software = replace(spec.software, sources={**answer, **spec.software.sources})
    return replace(spec, software=software)


class InventedSite(CloudDouble):
    """A double of the provider of a site: whatever is requested is there at once."""

    def __init__(self, folder: Path, real: Provider) -> None:
        """Take names and options from the provider itself."""
        super().__init__(folder)
        self._aws = real  # type: ignore[assignment]
        self.has_purchase_options = real.has_purchase_options  # type: ignore[misc]

    def outputs(self, context: SiteContext) -> SiteOutputs:
        """Return what is mounted of each managed file system and volume of the site."""
        spec, site = context.spec, context.site
        made = {
            name for name, storage in spec.storage.items() if isinstance(storage, LustreStorage)
        }
        if self._aws.name in clouds():
            made |= {plan.storage for plan in volume_plans(spec, site)}
        there = {name: f"/dev/disk/by-id/{name}" for name in made if self.machines}
        services = (n for n, storage in spec.storage.items() if isinstance(storage, FileService))
        there |= {name: f"10.0.255.9:/{name}" for name in services if self.machines}
        return SiteOutputs(file_systems=there)

    def hosts(self, context: SiteContext) -> tuple[Host, ...]:
        """Return what exists, each with an address."""
        found = enumerate(super().hosts(context), start=1)
        return tuple(
            replace(host, address=f"10.0.{number // 250}.{number % 250 + 1}")
            for number, host in found
        )

    def apply(self, context: SiteContext) -> None:
        """Make all of it."""
        wanted = self.graph(context.spec, context.site).resources
        options = {each.name: self._option(context, each) for each in wanted}
        self.put({name: option for name, option in options.items() if option})

    def _option(self, context: SiteContext, wanted: Resource) -> str:
        return super()._option(context, wanted) if self.has_purchase_options else "there"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_comes_up_changes_nothing_more_and_goes_down(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load(example)
    assert loaded.spec is not None
    spec = completed(loaded.spec)
    standing = {
        site.__struct_config__.tag: InventedSite(
            tmp_path / str(site.__struct_config__.tag), provider(str(site.__struct_config__.tag))
        )
        for site in loaded.spec.sites.values()
    }
    monkeypatch.setattr(sites, "provider", lambda name, _: standing[name])
    monkeypatch.setenv("GCLUSTER_AGE_KEY", str(x25519.Identity.generate()))

    def opened() -> Cluster:
        return Cluster(
            spec=spec,
            text=example.read_text(encoding="utf-8"),
            spec_path=tmp_path / example.name,
            state_url=f"file://{tmp_path}/state",
        )

    if example.stem in BUNDLED_FIRST:
        with pytest.raises(LifecycleError) as refused:
            up(opened(), silent, confirm=lambda _: True)
        assert {found.code for found in refused.value.diagnostics} == {"GC619"}
        return
    first = up(opened(), silent, confirm=lambda _: True)
    assert (first.exit_code, first.changed, first.failed_hosts) == (Exit.OK, True, {})
    assert all(each.machines for each in standing.values())
    assert not up(opened(), silent, confirm=lambda _: False).changed
    gone = down(opened(), silent, confirm=lambda _: True)
    assert gone.exit_code is Exit.OK
    assert not any(each.machines for each in standing.values())
