"""Where a pool's Slurm comes from: the role slurm_packages, where the cluster builds its own.

A builder node makes the packages from SchedMD's source once for each distribution and architecture
(`lifecycle/scheduler/slurm_build`), the controllers' mirror keeps them. Role slurm_packages makes
them a repository on the node's own disk, which the roles that install parts of Slurm then use.
"""

from __future__ import annotations

import msgspec

from ....schemas.spec import KubernetesScheduler
from ....schemas.stack.resolved import ResolvedComponent
from ....schemas.stack.slurm import DISTRIBUTION, slurm_sources, source_of
from ..node import NodeFacts
from ..roles import role_compiler
from ..steps import Json, Phase, Stage, Step
from ..system.packages import PACKAGE_MIRROR_PORT, PACKAGE_MIRROR_ROOT, source_url

BUILD_FOLDER = "slurm"
"""Below the mirror's root, the packages that the cluster has built."""
BUILD_RECIPE = 1
"""Raise it when what is built from the same source is to be another (roles/slurm_packages)."""


class SlurmBuild(msgspec.Struct, frozen=True, kw_only=True):
    """What the packages of a pool are built from."""

    version: str
    url: str
    checksum: str
    """sha256:...; "": none is known, and nodes refuse."""

    @property
    def key(self) -> str:
        """Name of the packages' folder: another source or recipe is another one."""
        return f"{self.version}-{self.checksum.removeprefix('sha256:')[:12]}-{BUILD_RECIPE}"


def slurm_component(node: NodeFacts) -> ResolvedComponent | None:
    """Return a pool's Slurm as it was resolved; None: the distribution's, whatever that is."""
    return next((c for c in node.software.components if c.key == "slurm"), None)


def slurm_build(node: NodeFacts) -> SlurmBuild | None:
    """Return what a pool's Slurm is built from; None where it is the distribution's package."""
    component = slurm_component(node)
    if component is None or component.install != "built":
        return None
    catalog = node.catalog.sources
    source = source_of(component.version, slurm_sources(catalog, node.spec.software))
    if source is None:
        return SlurmBuild(version=component.version, url="", checksum="")
    url = f"{source_url(node, catalog[source.artefact])}/{source.path}"
    return SlurmBuild(version=source.version, url=url, checksum=source.checksum)


def install_variables(node: NodeFacts, role: str) -> dict[str, Json]:
    """Return what a role's install phase gets of Slurm: its version and whether it was built.

    Without a version what is there stays, else the distribution's is installed.
    """
    component, build = slurm_component(node), slurm_build(node)
    if build is not None:
        return {f"{role}_version": build.version, f"{role}_built": True}
    if component is None or component.origin == DISTRIBUTION or not component.version:
        return {}
    own = node.pool.software
    said = node.spec.software.slurm if own is None or own.slurm == "auto" else own.slurm
    if said == DISTRIBUTION:
        return {}
    return {f"{role}_version": component.version if said == "auto" else said}


@role_compiler("slurm_packages", after=("munge",))
def slurm_packages_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role slurm_packages; none where Slurm is the distribution's package."""
    build = slurm_build(node)
    if build is None or isinstance(node.spec.scheduler, KubernetesScheduler):
        return []
    first = next(iter(node.cluster.controllers), None)
    address = "" if first is None else first.address
    mirror = f"http://{f'[{address}]' if ':' in address else address}:{PACKAGE_MIRROR_PORT}"
    if node.pool.role == "controller":
        mirror = f"file://{PACKAGE_MIRROR_ROOT}"
    version: dict[str, Json] = {"slurm_packages_version": build.version}
    place: dict[str, Json] = {"slurm_packages_mirror": f"{mirror}/{BUILD_FOLDER}/{build.key}"}
    source: dict[str, Json] = {
        "slurm_packages_url": build.url,
        "slurm_packages_checksum": build.checksum,
    }
    return [
        _step("preflight", version | source),
        _step("install", version | place),
        _step("verify", version),
    ]


def _step(phase: Phase, variables: dict[str, Json]) -> Step:
    """Return a step; a repository more on a node's disk disturbs no job."""
    return Step(
        stage=Stage.SCHEDULER,
        role="slurm_packages",
        phase=phase,
        variables=variables,
        spares_jobs=True,
        from_mirror=True,
    )
