"""The role containerd: what runs the containers of Kubernetes' nodes."""

from __future__ import annotations

from ...schemas.spec import KubernetesScheduler
from ...schemas.spec.software import SourceRedirect
from .node import NodeFacts
from .roles import role_compiler
from .steps import Json, Phase, Stage, Step

IMAGES_SOURCE = "kubernetes-images"
"""Artefact source of Kubernetes' own images."""
IMAGES_PORT = 8481
"""Where a node that takes images from an archive serves them to its own containerd."""
_EVERY_REGISTRY = "_default"
"""What containerd calls the hosts of registries that have none of their own (its docs/hosts.md)."""


def runs_kubernetes(node: NodeFacts) -> bool:
    """Whether a pool's hosts are control planes or nodes that we set up."""
    kubernetes = node.spec.scheduler
    if not isinstance(kubernetes, KubernetesScheduler) or kubernetes.control_plane != "self":
        return False
    return node.pool.role != "login"


def kubernetes_sources(node: NodeFacts) -> tuple[str, ...]:
    """Return the artefact sources whose packages these nodes take."""
    return () if node.kubernetes is not None else ("kubernetes", "docker-ce")


@role_compiler(
    "containerd",
    sources=("kubernetes", "docker-ce"),
    chosen=kubernetes_sources,
    components=("kubernetes",),
)
def containerd_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role containerd; none where Kubernetes isn't the scheduler."""
    if not runs_kubernetes(node):
        return []
    configured: dict[str, Json] = {}
    mirrors: dict[str, Json] = {}
    if node.kubernetes is not None:
        configured["containerd_sandbox_image"] = node.kubernetes.image("pause")
        mirrors[_EVERY_REGISTRY] = f"http://127.0.0.1:{IMAGES_PORT}"
    source = node.catalog.sources.get(IMAGES_SOURCE)
    redirect = node.spec.software.sources.get(IMAGES_SOURCE, SourceRedirect())
    if source is not None and redirect.url and node.bundle is None:
        registry = source.url.split("://")[-1]
        mirrors[registry] = redirect.url.rstrip("/")
    if mirrors:
        configured["containerd_mirrors"] = mirrors
    return [
        _step("preflight", {}),
        _step("install", {}),
        _step("configure", configured),
        _step("verify", {}),
    ]


def _step(phase: Phase, variables: dict[str, Json]) -> Step:
    """Return a step; pods go on while containerd is started anew."""
    return Step(
        stage=Stage.SCHEDULER,
        role="containerd",
        phase=phase,
        variables=variables,
        spares_jobs=phase != "install",
    )
