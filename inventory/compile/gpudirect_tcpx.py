"""The role gpudirect_tcpx: TCPX on A3 High, TCPXO on A3 Mega, each with its receive daemon."""

from __future__ import annotations

from ...schemas.spec.software import SourceRedirect
from .node import NodeFacts
from .package_sources import source_url
from .roles import role_compiler
from .steps import Json, Phase, Stage, Step

SOURCE = "google-gpudirect"
DAEMON, PLUGIN = "tcpgpudmarxd-dev", "nccl-plugin-gpudirecttcpx-dev"
"""Names of the images, the same for both (container-engine-accelerators, read 2026-11)."""

KINDS = {"gpudirect-tcpx": "tcpx", "gpudirect-tcpxo": "tcpxo"}
"""Fabric class -> what drives it: also the key of its daemon in the software lock."""


def gpudirect_tcpx_sources(node: NodeFacts) -> tuple[str, ...]:
    """Return the artefact sources: TCPXO has a kernel module of its own."""
    return ("google-tcpxo",) if node.fabric_class == "gpudirect-tcpxo" else ()


@role_compiler(
    "gpudirect_tcpx",
    sources=("google-tcpxo",),
    chosen=gpudirect_tcpx_sources,
    components=("tcpxo",),
    plugins=("tcpx", "tcpxo"),
    after=("efa",),
)
def gpudirect_tcpx_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role gpudirect_tcpx; none on other fabrics or without known versions."""
    kind = KINDS.get(node.fabric_class or "")
    if kind is None or node.gpu is None:
        return []
    daemon, plugin = node.version(kind), node.version(f"{kind}_plugin")
    if daemon is None or plugin is None:
        return []
    install: dict[str, Json] = {"gpudirect_tcpx_kind": kind}
    images = _image(node, kind, "daemon", daemon) | _image(node, kind, "plugin", plugin)
    everything = install | images | {"gpudirect_tcpx_nics": node.fabric_interfaces}
    phases: tuple[tuple[Phase, dict[str, Json]], ...] = (
        ("preflight", images),
        ("install", install),
        ("configure", everything),
        ("verify", everything),
    )
    return [
        Step(stage=Stage.FABRIC, role="gpudirect_tcpx", phase=phase, variables=variables)
        for phase, variables in phases
    ]


def _image(node: NodeFacts, kind: str, what: str, version: str) -> dict[str, Json]:
    """Return an image and its digest ("" where none is known) as variables of daemon or plugin."""
    source = node.catalog.sources[SOURCE]
    redirect = node.spec.software.sources.get(SOURCE, SourceRedirect())
    path = f"gpudirect-{kind}/{DAEMON if what == 'daemon' else PLUGIN}:v{version}"
    registry = source_url(node, source).partition("://")[2]
    digest = redirect.checksums.get(path) or source.image_digests.get(path, "")
    name = f"gpudirect_tcpx_{what}"
    return {name: f"{registry}/{path}", f"{name}_digest": digest}
