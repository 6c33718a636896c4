"""The role efa: AWS' Elastic Fabric Adapter from its signed installer."""

from __future__ import annotations

from ...schemas.spec.software import SourceRedirect
from .node import NodeFacts
from .package_sources import file_variables, source_url
from .roles import role_compiler
from .steps import Json, Phase, Stage, Step

SOURCE = "aws-efa"


@role_compiler("efa", components=("efa",), plugins=("efa",), after=("roce",))
def efa_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role efa; none on other fabrics or without a known version."""
    version = node.version("efa")
    if not (node.fabric_class or "").startswith("efa-") or node.gpu is None or version is None:
        return []
    asked: dict[str, Json] = {"efa_version": version}
    phases: tuple[tuple[Phase, dict[str, Json]], ...] = (
        ("install", asked | _installer(node, version)),
        ("configure", {}),
        ("join", {}),
        ("verify", asked | {"efa_interfaces": node.fabric_interfaces}),
    )
    return [
        Step(stage=Stage.FABRIC, role="efa", phase=phase, variables=variables)
        for phase, variables in phases
    ]


def _installer(node: NodeFacts, version: str) -> dict[str, Json]:
    """Return where the installer and its signature are, and whose key signs it."""
    source = node.catalog.sources[SOURCE]
    redirect = node.spec.software.sources.get(SOURCE, SourceRedirect())
    file = file_variables(node, SOURCE, "installer", version)
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
