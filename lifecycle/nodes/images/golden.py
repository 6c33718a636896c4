"""The golden image: the install phases of all roles, run once into an image that nodes boot from.

Its key is the hash of the provider's base image and of every install step, so a node that boots
from it has the stamps that `up` checks, and skips those steps.
"""

from __future__ import annotations

import fcntl
import hashlib
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ....inventory.compile import CompiledCluster, Group, Step, compile_cluster
from ....inventory.compile.slurm.elastic import placeholders
from ....inventory.hosts import ClusterInventory, Host, elastic_nodes
from ....schemas.spec import ClusterSpec
from ....stacks.provider import Provider
from ...cluster.cluster import Cluster
from ...cluster.open_site import OpenSite, ignore, inventory
from ...cluster.outcome import LifecycleError
from ...cluster.progress import Reporter, StageFinished, StageProgress, StageStarted
from ..converge.pending import pending_steps, step_digests
from ..converge.run import converge
from ..converge.seals import seal_command
from ..converge.watch import findings
from ..ssh import SshSession

BAKED_PHASES = frozenset({"preflight", "install"})


def is_baked(step: Step) -> bool:
    """Whether a step can run into an image: it needs no cluster around it."""
    return step.phase in BAKED_PHASES and not step.from_mirror


def baker(site: OpenSite) -> Provider | None:
    """Return the site's provider; None when its nodes boot from no image of ours."""
    takes_none = site.context.spec.sites[site.name].boots_stock_image
    return site.provider if site.provider.bakes_images and not takes_none else None


def install_group(compiled: CompiledCluster, site: OpenSite) -> Group | None:
    """Return one group with every step to bake for a site, each once.

    A step that differs between pools (drivers of two GPU types) fits no image of both, and is left
    to the nodes. So is one that no compute node needs, such as a database: its package would start
    it wherever the image boots.
    """
    pools = site.context.spec.pools
    here = [group for group in compiled.groups if pools[group.name].site == site.name]
    compute = [group for group in here if pools[group.name].is_compute]
    needed = {step.key for group in compute or here for step in group.steps}
    found: dict[str, list[Step]] = {}
    for group in here:
        for step in group.steps:
            if is_baked(step) and step not in found.setdefault(step.key, []):
                found[step.key].append(step)
    steps = tuple(alike[0] for key, alike in found.items() if len(alike) == 1 and key in needed)
    if not steps:
        return None
    return Group(name="image", hosts=("image-builder",), steps=steps)


def image_key(base_digest: str, group: Group) -> str:
    """Return the key of the image: SHA-256 in hex over the base, the install steps, their seals."""
    steps = step_digests(group, {})
    content = [base_digest, [digest for _, digest in steps]]
    seals = [seal_command(step, "") for step, _ in steps]
    return hashlib.sha256(msgspec.json.encode([*content, seals])).hexdigest()


def compile_for_images(cluster: Cluster, hosts: Iterable[Host]) -> CompiledCluster:
    """Compile for hosts, and for one of each pool that has none yet and may get some.

    Nodes that come when a job needs them have the most from an image, and install steps depend on
    no host.
    """
    there = tuple(hosts)
    pools = {host.pool for host in there}
    coming = {each.pool: each for each in placeholders(cluster.spec) if each.pool not in pools}
    all_of_them = inventory(cluster.spec, (*there, *coming.values()))
    return compile_cluster(
        cluster.spec, all_of_them, cluster.catalog, kubernetes=cluster.kubernetes
    )


def elastic_sites(spec: ClusterSpec) -> frozenset[str]:
    """Return the sites that have pools whose nodes come and go."""
    return frozenset(spec.pools[pool].site for pool in elastic_nodes(spec))


def booting_sites(  # noqa: PLR0917  # what is booted, where, and the reporter
    cluster: Cluster,
    sites: tuple[OpenSite, ...],
    growing: Collection[str],
    hosts: Iterable[Host],
    run_dir: Path,
    report: Reporter,
) -> tuple[OpenSite, ...]:
    """Return the sites; the new nodes of those in `growing` boot from their golden image.

    With a bundle none is baked, which would need the mirrors: nodes start from the plain base.
    """
    if cluster.bundle is not None or not growing:
        return sites
    baked = compile_for_images(cluster, hosts)
    return tuple(
        site.booting(ensure_image(site, baked, run_dir, report)) if site.name in growing else site
        for site in sites
    )


def ensure_image(
    site: OpenSite, compiled: CompiledCluster, run_dir: Path, report: Reporter
) -> str | None:
    """Return the key of the site's golden image, baking it where it is missing.

    Raises:
        LifecycleError: an install step failed in the builder; no image is left behind.
    """
    provider = baker(site)
    group = install_group(compiled, site)
    if provider is None or group is None:
        return None
    key = image_key(provider.base_digest(site.context.spec, site.name), group)
    if provider.has_image(site.context, key):
        return key
    began = time.monotonic()
    report(StageStarted(name="image", total=len(group.steps)))
    with _only_one_baker(site.context.cache / f"bake-{key[:16]}.lock"):
        if not provider.has_image(site.context, key):
            _bake(provider, site, group, key=key, run_dir=run_dir, report=report)
    seconds = time.monotonic() - began
    report(StageFinished(name="image", ok=True, summary=f"baked {key[:12]}", seconds=seconds))
    return key


def _bake(
    provider: Provider, site: OpenSite, group: Group, *, key: str, run_dir: Path, report: Reporter
) -> None:
    report(StageProgress(name="image", done=0, total=len(group.steps), detail="base system"))
    quiet = msgspec.structs.replace(site.context, emit=ignore)
    builder = provider.start_builder(quiet, key)
    try:
        _install(builder, group, run_dir / "image", report)
    except BaseException:
        provider.discard_builder(site.context, key)
        raise
    provider.commit_builder(site.context, key)


def _install(builder: Host, group: Group, run_dir: Path, report: Reporter) -> None:
    group = msgspec.structs.replace(group, hosts=(builder.name,))
    nodes = ClusterInventory(cluster="image", hosts=(builder,))
    run_dir.mkdir(parents=True, exist_ok=True)
    with SshSession(run_dir) as session:
        try:
            result = converge(
                pending_steps(CompiledCluster(cluster="image", groups=(group,)), {}, {}),
                nodes,
                session,
                secret_files={},
                run_dir=run_dir,
                report=_renamed(report),
            )
        finally:
            session.close()
    if result.failures:
        raise LifecycleError(*findings(result, "gcluster up"))


def _renamed(report: Reporter) -> Reporter:
    """Show the builder's convergence under the stage "image"."""

    def forward(progress: object) -> None:
        if isinstance(progress, StageProgress):
            report(msgspec.structs.replace(progress, name="image"))

    return forward


@contextmanager
def _only_one_baker(path: Path) -> Iterator[None]:
    """Two commands that need the same image: one bakes, the other waits and finds it."""
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
