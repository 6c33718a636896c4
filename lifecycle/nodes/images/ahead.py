"""`gcluster image`: golden images before their first node, or playbooks that make them elsewhere.

Where the provider bakes (local sites), the install phases run into an image now, and `up` finds it.
For other image builders the same phases are written as a playbook for each pool: the machine that
ran it carries the stamps, so nodes that boot from its disk skip what is in it.
"""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from ....inventory.compile import CompiledCluster, Group
from ...cluster.cluster import Cluster
from ...cluster.open_site import OpenSite
from ...cluster.outcome import Exit, failure
from ...cluster.progress import Reporter
from ...cluster.sites import open_sites
from ...planning.preflight.obstacles import refuse_obstacles
from ...state import acquire
from ...up.run import Run
from ..converge.pending import pending_steps
from ..converge.playbook import playbook_yaml
from .golden import (
    baker,
    compile_for_images,
    ensure_image,
    image_key,
    install_group,
    is_baked,
)

ANY_HOST = "all"
"""Hosts of a written playbook: whatever machine the image builder has started."""


class SiteImage(msgspec.Struct, frozen=True, kw_only=True):
    """The image that a site's nodes boot from."""

    site: str
    provider: str
    key: str
    steps: tuple[str, ...]
    """Steps that are in it, such as "slurm.install"; nodes that boot from it skip them."""
    was_there: bool
    """An image of these very steps was there already."""
    seconds: float


class Images(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `gcluster image`."""

    cluster: str
    sites: tuple[SiteImage, ...]
    """Sites whose image is there now."""
    unbaked: dict[str, str]
    """Site -> provider, of those whose nodes boot from no image that gcluster bakes."""
    playbooks: dict[str, str] = {}
    """Pool -> path of the playbook that was written."""


def make_images(cluster: Cluster, report: Reporter, *, out: Path | None = None) -> Images:
    """Bake the image of every site that supports it, and write playbooks into `out` if given.

    Raises:
        LifecycleError: no site of the spec supports baking and no playbook was requested; or a step
            failed in the builder, and no image is kept.
    """
    sites = open_sites(cluster)
    compiled = _compiled(cluster, sites)
    baking = [site for site in sites if _bakes(site, compiled)]
    unbaked = {site.name: site.provider.name for site in sites if site not in baking}
    if not baking and out is None:
        raise failure(
            "GC917",
            "no site of this spec boots its nodes from an image that gcluster bakes",
            detail=", ".join(f"{name} is {provider}" for name, provider in unbaked.items()),
            hint=f"gcluster image {cluster.spec_path} --out DIR writes the install phases of each "
            "pool as a playbook for an image builder",
            exit_code=Exit.REFUSED,
        )
    return Images(
        cluster=cluster.name,
        sites=_bake(cluster, [site.name for site in baking], compiled, report) if baking else (),
        unbaked=unbaked,
        playbooks={} if out is None else _write_playbooks(compiled, out),
    )


def install_playbook(group: Group) -> str:
    """Return the install phases of one pool as a playbook over any machine, stamps at the end."""
    steps = tuple(step for step in group.steps if is_baked(step))
    anywhere = msgspec.structs.replace(group, hosts=(ANY_HOST,), steps=steps)
    pending = pending_steps(CompiledCluster(cluster="image", groups=(anywhere,)), {}, {})
    return playbook_yaml(pending, {})


def _write_playbooks(compiled: CompiledCluster, out: Path) -> dict[str, str]:
    written = {}
    for group in compiled.groups:
        path = out / group.name / "install.yml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(install_playbook(group), encoding="utf-8")
        written[group.name] = str(path)
    return written


def _bakes(site: OpenSite, compiled: CompiledCluster) -> bool:
    return baker(site) is not None and install_group(compiled, site) is not None


def _compiled(cluster: Cluster, sites: tuple[OpenSite, ...]) -> CompiledCluster:
    """Compile for the hosts that are planned: install steps depend on none of them."""
    hosts = [
        host for site in sites for host in site.provider.planned_hosts(cluster.spec, site.name)
    ]
    return compile_for_images(cluster, hosts)


def _bake(
    cluster: Cluster, names: list[str], compiled: CompiledCluster, report: Reporter
) -> tuple[SiteImage, ...]:
    cluster.identify()
    with (
        acquire(cluster.store, tuple(names), reason="image") as lock,
        Run(cluster, "image", lock) as run,
    ):
        sites = tuple(site for site in open_sites(cluster, making=True) if site.name in names)
        refuse_obstacles(sites, report)
        found = tuple(_image(site, compiled, run, report) for site in sites)
        run.finish(Exit.OK)
    return found


def _image(site: OpenSite, compiled: CompiledCluster, run: Run, report: Reporter) -> SiteImage:
    group, provider = install_group(compiled, site), baker(site)
    if group is None or provider is None:
        raise AssertionError(site.name)
    key = image_key(provider.base_digest(site.context.spec, site.name), group)
    there, began = provider.has_image(site.context, key), time.monotonic()
    ensure_image(site, compiled, run.directory, report)
    return SiteImage(
        site=site.name,
        provider=site.provider.name,
        key=key,
        steps=tuple(step.key for step in group.steps),
        was_there=there,
        seconds=round(time.monotonic() - began, 1),
    )
