"""What keeps Kubernetes from being set up, reported before anything is changed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ...inventory.compile.kubernetes_objects.addons import cni
from ...inventory.compile.kubernetes_objects.objects import pause_image
from ...inventory.hosts import ClusterInventory
from ...schemas.diagnostics import Diagnostic, PathTuple, Severity
from ...schemas.load import load_text
from ...schemas.spec import ClusterSpec, KubernetesScheduler
from ...schemas.stack.bundle import KubernetesBundle
from ..cluster.cluster import Cluster
from ..planning.changes import UpgradeLine
from ..planning.preflight.offline import unknown_digests
from ..status.observe import Observation
from .managed.joining import managed_findings
from .objects import DesiredObjects, desired_objects, images, left_out
from .release.source import takes_own_build
from .settle import JOINED


def kubernetes_findings(cluster: Cluster, hosts: ClusterInventory) -> tuple[Diagnostic, ...]:
    """Return what blocks `up`, and what it leaves out; () where Slurm schedules."""
    spec = cluster.spec
    if not isinstance(spec.scheduler, KubernetesScheduler):
        return ()
    found = desired_objects(spec, hosts, cluster.catalog)
    at = cluster.kubernetes
    if at is None:
        return (*managed_findings(spec), *_elsewhere(cluster, found))
    whose = "of local nodes" if at.root else "that the nodes live on"
    more = () if at.root or cluster.bundle is None else cluster.bundle.images
    held = {image.reference for image in at.manifest.images}
    held |= {image.reference.partition("@")[0] for image in more if image.archive}
    return (
        *_other_version(spec, at.manifest, whose),
        *_not_in_the_bundle(found, held, whose),
        *(
            _left_out(spec, left_out(spec, hosts, cluster.catalog))
            if takes_own_build(spec)
            else _elsewhere(cluster, found)
        ),
    )


def _elsewhere(cluster: Cluster, found: DesiredObjects) -> tuple[Diagnostic, ...]:
    """Machines get pinned add-ons only."""
    loaded = load_text(cluster.spec_text, file=str(cluster.spec_path), check=False)
    return unknown_digests(found.facts, loaded)


def _other_version(spec: ClusterSpec, bundle: KubernetesBundle, whose: str) -> Iterator[Diagnostic]:
    """Check that the bundle has what the spec needs."""
    requested: dict[PathTuple, str] = {("software", "kubernetes"): spec.software.kubernetes}
    for name, pool in spec.pools.items():
        if pool.software is not None:
            requested["pools", name, "software", "kubernetes"] = pool.software.kubernetes
    for path, version in requested.items():
        wants = version.removeprefix("v")
        if wants not in {"auto", bundle.kubernetes} and not bundle.kubernetes.startswith(
            f"{wants}."
        ):
            yield _error(
                "GC1001",
                f"{'.'.join(map(str, path))} requests Kubernetes {version}, and the bundle "
                f"{whose} has {bundle.kubernetes}",
                path=path,
                hint=f'write "{bundle.kubernetes}", or leave it out',
            )


def _not_in_the_bundle(found: DesiredObjects, held: set[str], whose: str) -> Iterator[Diagnostic]:
    """Nodes that take images from a bundle pull none."""
    network = cni(found.facts)
    if network != "routed" and takes_own_build(found.facts.spec):
        yield _error(
            "GC1002",
            f"the pod network {network} is not in the bundle {whose}",
            path=("scheduler", "cni"),
            hint="write cni: routed, or leave it out",
        )
    requested = {image for made in found.objects.values() for image in images(made)}
    for image in sorted({*requested, pause_image(found.facts)} - held):
        yield _error(
            "GC1002",
            f"image {image} is not in the bundle {whose}",
            hint="lifecycle/kubernetes/release/programs.yaml names the images of our own build; "
            "gcluster bundle SPEC --out DIR collects those of machines",
        )


def _left_out(spec: ClusterSpec, names: frozenset[str]) -> Iterator[Diagnostic]:
    """Report which add-ons a cluster has to do without."""
    assert isinstance(spec.scheduler, KubernetesScheduler)  # noqa: S101  # the caller checked
    if names:
        queues = ", so there are no queues" if "kueue" in names else ""
        yield Diagnostic(
            code="GC1003",
            severity=Severity.NOTE,
            summary=f"local nodes go without add-ons: {', '.join(sorted(names))} left out{queues}",
            path=("scheduler",),
            hint="write kueue: false to say so yourself" if "kueue" in names else "",
        )


def _error(code: str, summary: str, *, hint: str, path: PathTuple = ()) -> Diagnostic:
    return Diagnostic(code=code, severity=Severity.ERROR, summary=summary, hint=hint, path=path)


_WHAT = ": kubernetes"
"""How a line of a plan's upgrades ends that is about a pool's Kubernetes."""


def skew_findings(
    upgrades: Iterable[UpgradeLine], observation: Observation
) -> tuple[Diagnostic, ...]:
    """Return an error for each step that would skip a minor or go back (GC1009).

    Args:
        upgrades: versions that differ from those that the cluster was last brought up with.
        observation: what exists; where no node ever joined there is no earlier version.
    """
    if not any(JOINED in carried for carried in observation.stamps.values()):
        return ()
    pools: dict[tuple[str, str], list[str]] = {}
    for line in upgrades:
        if line.what.endswith(_WHAT):
            pool = line.what.removesuffix(_WHAT)
            pools.setdefault((line.before, line.after), []).append(pool)
    found = ((names, wrong(*step)) for step, names in pools.items())
    return tuple(
        Diagnostic(
            code="GC1009",
            severity=Severity.ERROR,
            summary=f"{why[0]} ({'pools' if len(names) > 1 else 'pool'} {', '.join(names)})",
            path=("software", "kubernetes"),
            hint=why[1],
        )
        for names, why in found
        if why is not None
    )


def wrong(before: str, after: str) -> tuple[str, str] | None:
    """Return what is wrong with an upgrade between versions, and what to do; None: it is allowed.

    Args:
        before: what runs: "1.34.4", or "1.34" where packages have the newest of a minor.
        after: the version of the spec.
    """
    runs, wanted = _numbers(before), _numbers(after)
    both = min(len(runs), len(wanted))
    if runs[:1] != wanted[:1] or wanted[:both] < runs[:both]:
        return (
            f"Kubernetes {before} runs, and {after} is older",
            f'write software.kubernetes: "{before}" or a newer one: Kubernetes doesn\'t go back',
        )
    if both > 1 and wanted[1] > runs[1] + 1:
        between = f"{runs[0]}.{runs[1] + 1}"
        return (
            f"Kubernetes {before} runs, and {after} skips a minor",
            f"go to {between} first, then on from there",
        )
    return None


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, two or three of them."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
