"""What blocks a spec that passed all checks, from spec and catalog alone.

The checks use no provider and no compiler. Here both are called, without a machine or a network:
for what a provider can't create, and what isn't pinned.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ....schemas.catalog import load_catalog
from ....schemas.diagnostics import Diagnostic, Severity
from ....schemas.load import Loaded
from ....schemas.spec import ClusterSpec, KubernetesScheduler
from ...cluster.outcome import Exit, LifecycleError

if TYPE_CHECKING:  # `validate` uses this too, and compiles nothing for most specs
    from ....inventory.compile import CompiledCluster, Step
    from ....inventory.compile.kubernetes_objects.facts import KubernetesFacts

CATALOG = "files/addons/addons.yaml"
"""The catalog file of a bundle: named under `catalog:` it fills in what gcluster's leaves open."""
_NAMED = 3
"""Most images that a message names."""


class RefusedSpecError(LifecycleError):
    """The spec needs what can't be created; `loaded` carries the text for the excerpts."""

    def __init__(self, loaded: Loaded, *diagnostics: Diagnostic) -> None:
        """Hold the diagnostics and the text they point into."""
        super().__init__(*diagnostics, exit_code=Exit.SPEC)
        self.loaded = loaded


def refuse_unmakeable(loaded: Loaded) -> None:
    """Check that the providers can create what the spec needs.

    Args:
        loaded: a spec without errors.

    Raises:
        RefusedSpecError: a provider can't create what the spec needs (exit code SPEC).
    """
    if loaded.spec is None:
        return
    errors = list(_of_providers(loaded.spec, loaded))
    if errors:
        raise RefusedSpecError(loaded, *errors)


def offline_findings(loaded: Loaded) -> tuple[Diagnostic, ...]:
    """Return all findings of `validate` except its checks; () where the spec has errors."""
    spec = loaded.spec
    if spec is None:
        return ()
    of_providers = tuple(_of_providers(spec, loaded))
    unkeyed = () if of_providers else _unkeyed(spec, loaded)
    return (*of_providers, *_unpinned(spec, loaded), *unkeyed)


def unknown_digests(
    facts: KubernetesFacts, loaded: Loaded, severity: Severity = Severity.ERROR
) -> tuple[Diagnostic, ...]:
    """Return a finding for each add-on of which something has no digest, in order of application.

    `up` refuses them; a bundle pins them, which is why a spec that lacks them is no wrong one.
    """
    from ....inventory.compile.kubernetes_objects.addons import (  # noqa: PLC0415  # Kubernetes only
        unfilled,
    )

    return tuple(
        _placed(
            loaded,
            Diagnostic(
                code="GC619",
                severity=severity,
                summary=f"add-on {name}: no digest is known of {_what(missing)}",
                path=("scheduler",),
                hint=f"gcluster bundle {loaded.file} --digests {_lock(loaded)}; then add "
                f"{_lock(loaded).name} to catalog:",
            ),
            key=True,
        )
        for name, missing in unfilled(facts).items()
    )


def _lock(loaded: Loaded) -> Path:
    """Return the catalog file of digests next to the spec."""
    path = Path(loaded.file)
    return path.with_name(f"{path.stem}.addons.yaml")


def _of_providers(spec: ClusterSpec, loaded: Loaded) -> Iterator[Diagnostic]:
    clouds = [name for name, site in spec.sites.items() if site.is_cloud]
    if not clouds:
        return
    catalog = load_catalog(loaded.catalogs)
    from ....stacks.registry import provider  # noqa: PLC0415  # clouds only: validate waits for it

    known = [
        said
        for name in clouds
        for said in provider(spec.sites[name].provider, catalog).refusals(spec, name)
    ]
    yield from (_placed(loaded, said) for said in known)
    if any(pool.failover for pool in spec.pools.values()):
        from ....schemas.derived.failover import elsewhere  # noqa: PLC0415  # few have it

        for pool, site, moved in elsewhere(spec):
            for said in provider(spec.sites[site].provider, catalog).refusals(moved, site):
                if said not in known:
                    summary = f'at site "{site}", {said.summary}'
                    path = ("pools", pool, "failover")
                    yield _placed(loaded, msgspec.structs.replace(said, summary=summary, path=path))


def _unpinned(spec: ClusterSpec, loaded: Loaded) -> tuple[Diagnostic, ...]:
    """Return what `up` without a bundle refuses; sites made here have a build of their own."""
    made_here = any(site.is_made_here for site in spec.sites.values())
    if not isinstance(spec.scheduler, KubernetesScheduler) or made_here:
        return ()
    from ....inventory.compile.kubernetes_objects.facts import (  # noqa: PLC0415  # Kubernetes only
        kubernetes_facts,
    )
    from ....inventory.hosts import ClusterInventory  # noqa: PLC0415  # as above

    hosts = ClusterInventory(cluster=spec.name, hosts=())
    facts = kubernetes_facts(spec, hosts, load_catalog(loaded.catalogs))
    return unknown_digests(facts, loaded, Severity.WARNING)


def unsigned(
    compiled: CompiledCluster, severity: Severity = Severity.ERROR
) -> tuple[Diagnostic, ...]:
    """Return a finding for each repository without a fingerprint, and image without a digest."""
    pools: dict[str, list[str]] = {}
    for group in compiled.groups:
        for name in sorted(_unsigned_sources(group.steps)):
            pools.setdefault(name, []).append(group.name)
    return tuple(
        Diagnostic(
            code="GC936",
            severity=severity,
            summary=f'no fingerprint is known of the key of "{name}", which {_pools(asking)} needs',
            path=("software", "sources", name),
            hint="`up` refuses that: read it from the vendor through another way than the "
            f"download, and write software.sources.{name}.key_fingerprint",
        )
        for name, asking in sorted(pools.items())
    ) + _undigested(compiled, severity)


def _undigested(compiled: CompiledCluster, severity: Severity) -> tuple[Diagnostic, ...]:
    """Return a finding for each image that a role runs and whose digest is unknown."""
    pools: dict[str, list[str]] = {}
    for group in compiled.groups:
        for image in sorted({i for step in group.steps for i in _images_without_digest(step)}):
            pools.setdefault(image, []).append(group.name)
    return tuple(
        Diagnostic(
            code="GC936",
            severity=severity,
            summary=f"no digest is known of the image {image}, which {_pools(asking)} needs",
            path=("software", "sources"),
            hint="`up` refuses that: read it from the registry, and write it under checksums of "
            f"its source: {image.split('/', 2)[-1]}",
        )
        for image, asking in sorted(pools.items())
    )


def _images_without_digest(step: Step) -> Iterator[str]:
    for name, value in step.variables.items():
        image = name.removesuffix("_digest")
        if image != name and not value and step.variables.get(image):
            yield str(step.variables[image])


def _unsigned_sources(steps: tuple[Step, ...]) -> set[str]:
    return {
        str(repository["name"])
        for step in steps
        if step.key == "package_sources.install"
        for repository in step.variables["package_sources_repositories"]
        if not repository["key_fingerprint"]
    }


def _pools(pools: list[str]) -> str:
    return f"pool {pools[0]}" + (f" (and {len(pools) - 1} more)" if len(pools) > 1 else "")


def _unkeyed(spec: ClusterSpec, loaded: Loaded) -> tuple[Diagnostic, ...]:
    """Return what `up` without a bundle refuses: one host of each pool is compiled for it.

    Sites made here take nothing from vendors.
    """
    if all(site.is_made_here for site in spec.sites.values()):
        return ()
    from ....inventory.compile import compile_cluster  # noqa: PLC0415  # validate waits for it
    from ....stacks.registry import provider  # noqa: PLC0415  # as above
    from ...cluster.open_site import inventory  # noqa: PLC0415  # as above

    catalog = load_catalog(loaded.catalogs)
    hosts = {
        (host.pool, host.role): host
        for name, site in spec.sites.items()
        for host in provider(site.provider, catalog).planned_hosts(spec, name)
    }
    compiled = compile_cluster(spec, inventory(spec, hosts.values()), catalog)
    return tuple(_placed(loaded, said) for said in unsigned(compiled, Severity.WARNING))


def _placed(loaded: Loaded, said: Diagnostic, *, key: bool = False) -> Diagnostic:
    """Return a finding with its place in the text; of a mapping it is the key."""
    document, path = loaded.document, said.path
    whole = key or len(path) == len(("pools", "NAME"))
    span = None if document is None or not path else document.locate(path, key=whole)
    return msgspec.structs.replace(said, file=loaded.file, span=span)


def _what(missing: list[str]) -> str:
    """Name what lacks a digest: the chart or manifest itself, and some of the images."""
    named = [name or "the chart or manifest itself" for name in missing]
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return ", ".join(named[:_NAMED]) + more
