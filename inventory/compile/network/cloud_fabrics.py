"""Fabrics that one cloud has: roles efa (AWS), gpudirect_tcpx and gib (Google)."""

from __future__ import annotations

from ....schemas.spec.software import SourceRedirect
from ..node import NodeFacts
from ..roles import role_compiler
from ..steps import Json, Phase, Stage, Step
from ..system.packages import file_variables, source_url

EFA_SOURCE = "aws-efa"


@role_compiler("efa", components=("efa",), plugins=("efa",), after=("roce",))
def efa_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role efa; none on other fabrics or without a known version."""
    version = node.installs("efa")
    if not (node.fabric_class or "").startswith("efa-") or node.gpu is None or version is None:
        return []
    requested: dict[str, Json] = {"efa_version": version}
    phases: tuple[tuple[Phase, dict[str, Json]], ...] = (
        ("install", requested | _installer(node, version)),
        ("configure", {}),
        ("join", {}),
        ("verify", requested | {"efa_interfaces": node.fabric_interfaces}),
    )
    return [
        Step(stage=Stage.FABRIC, role="efa", phase=phase, variables=variables)
        for phase, variables in phases
    ]


def _installer(node: NodeFacts, version: str) -> dict[str, Json]:
    """Return where the installer and its signature are, and whose key signs it."""
    source = node.catalog.sources[EFA_SOURCE]
    redirect = node.spec.software.sources.get(EFA_SOURCE, SourceRedirect())
    file = file_variables(node, EFA_SOURCE, "installer", version)
    root = source_url(node, source)
    signature = (source.files[0].signature_path or "").format(version=version)
    return {
        "efa_url": file["url"],
        "efa_checksum": file["checksum"],
        "efa_signature_url": f"{root}/{signature}",
        "efa_key": redirect.key or "",
        "efa_key_url": redirect.key_url or f"{root}/{source.key_path}",
        "efa_key_fingerprint": redirect.key_fingerprint or source.key_fingerprint or "",
    }


GPUDIRECT_SOURCE = "google-gpudirect"
DAEMON, PLUGIN = "tcpgpudmarxd-dev", "nccl-plugin-gpudirecttcpx-dev"
"""Names of the images, the same for both (container-engine-accelerators, read 2026-11)."""

HOST_PATHS = {
    "gpudirect-tcpx": ("/var/lib/tcpx", "/run/tcpx"),
    "gpudirect-tcpxo": ("/var/lib/tcpxo", "/dev/aperture_devices"),
    "gib": ("/usr/local/gib", "/dev/infiniband"),
    "gib-metal": ("/usr/local/gib", "/dev/infiniband"),
}
"""Fabric class -> what its library and daemon on the node give to containers, by the roles that set
them up: the plugin, the daemon's sockets and devices."""

ASAPD = "asapd-lite/asapd-lite"
"""Image of the daemon that bare metal's RDMA interfaces need (Cluster Toolkit's a4xmax-bm-slurm
blueprint; read 2026-11)."""

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
    daemon, plugin = node.installs(kind), node.installs(f"{kind}_plugin")
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
    path = f"gpudirect-{kind}/{DAEMON if what == 'daemon' else PLUGIN}:v{version}"
    return _google_image(node, path, f"gpudirect_tcpx_{what}")


def _google_image(node: NodeFacts, path: str, name: str) -> dict[str, Json]:
    source = node.catalog.sources[GPUDIRECT_SOURCE]
    redirect = node.spec.software.sources.get(GPUDIRECT_SOURCE, SourceRedirect())
    registry = source_url(node, source).partition("://")[2]
    digest = redirect.checksums.get(path) or source.image_digests.get(path, "")
    return {name: f"{registry}/{path}", f"{name}_digest": digest}


@role_compiler(
    "gib",
    sources=("google-gib",),
    components=("gib", "asapd"),
    plugins=("gib", "gib-metal"),
    after=("gpudirect_tcpx",),
)
def gib_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role gib; none on other fabrics or without a known version."""
    version = node.installs("gib")
    if node.fabric_class not in {"gib", "gib-metal"} or node.gpu is None or version is None:
        return []
    daemon = node.installs("asapd") if node.fabric_class == "gib-metal" else None
    image = {} if daemon is None else _google_image(node, f"{ASAPD}:v{daemon}", "gib_daemon")
    install: dict[str, Json] = {"gib_version": version}
    phases: tuple[tuple[Phase, dict[str, Json]], ...] = (
        ("install", install),
        ("configure", image),
        ("verify", install | image | {"gib_interfaces": node.fabric_interfaces}),
    )
    return [
        Step(stage=Stage.FABRIC, role="gib", phase=phase, variables=variables)
        for phase, variables in phases
    ]
