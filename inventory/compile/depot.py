"""The role depot and what a bundle does to the nodes' sources: one repository, for everything."""

from __future__ import annotations

import msgspec

from ...schemas.bundle import BundleManifest
from .node import NodeFacts
from .roles import role_compiler
from .steps import Json, Phase, Stage, Step

DEPOT_PORT = 8480
DEPOT_ROOT = "/srv/gcluster/depot"
"""On the controllers; what lies below it is served."""
BUNDLE_FOLDER = "bundle"
"""Below the depot's root, what `up --bundle` brought."""
BUNDLE_SOURCE = "bundle"
"""Name of the one artefact source of nodes that live on a bundle."""


def living_on(
    bundle: BundleManifest, facts: dict[str, NodeFacts], controller: str
) -> dict[str, NodeFacts]:
    """Return pools that take everything from a bundle: controllers from their disk.

    Args:
        bundle: what they live on.
        facts: pool -> its nodes.
        controller: address of the first controller; "" while it is only planned.
    """
    depot = f"http://{controller}:{DEPOT_PORT}"
    return {
        name: msgspec.structs.replace(
            node,
            bundle=bundle,
            bundle_root=f"file://{DEPOT_ROOT}/{BUNDLE_FOLDER}"
            if node.pool.role == "controller"
            else f"{depot}/{BUNDLE_FOLDER}",
        )
        for name, node in facts.items()
    }


@role_compiler("depot")
def depot_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role depot: on controllers, where nodes take anything from them.

    They come before everything else of the cluster: the other nodes' packages come from
    there, and the roles of nodes that converge themselves.
    """
    if node.pool.role != "controller" or (node.bundle is None and not node.cluster.pulls):
        return []
    repositories = [] if node.bundle is None else _repositories(node.bundle, node.bundle_root)
    served: dict[str, Json] = {"depot_port": DEPOT_PORT}
    return [
        _step("depot", "install", {"depot_repositories": repositories}),
        _step("depot", "configure", served),
        _step("depot", "verify", served),
    ]


@role_compiler("bundle_source", after=("depot",))
def bundle_source_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role package_sources that make the bundle a pool's only source."""
    if node.bundle is None:
        return []
    variables: dict[str, Json] = {
        "package_sources_repositories": _repositories(node.bundle, node.bundle_root),
        "package_sources_only": True,
    }
    return [_step("package_sources", phase, variables) for phase in ("install", "verify")]


def _repositories(bundle: BundleManifest, root: str) -> list[Json]:
    """Return the bundle's repositories as role package_sources takes them."""
    return [
        {
            "name": BUNDLE_SOURCE,
            "distribution": repository.distribution,
            "url": f"{root}/{repository.path}",
            "suite": "/",
            "key": bundle.key,
            "key_fingerprint": bundle.key_fingerprint,
            "packages": ["*"],
        }
        for repository in bundle.repositories
    ]


def _step(role: str, phase: Phase, variables: dict[str, Json]) -> Step:
    return Step(stage=Stage.BASE, role=role, phase=phase, variables=variables, spares_jobs=True)
