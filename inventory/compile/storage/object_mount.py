"""The role object_mount: buckets that a pool's nodes see as files."""

from __future__ import annotations

from typing import cast

from ....schemas.derived.storage import mount_point
from ....schemas.spec import ObjectStorage
from ..node import NodeFacts
from ..roles import role_compiler
from ..steps import Json, Phase, Stage, Step
from ..system.packages import file_variables

_TOOLS = {"s3": "mountpoint-s3", "gs": "gcsfuse", "az": "blobfuse2"}
"""Scheme of a bucket -> the tool, which is also its artefact source; OCI's buckets have none."""
_SCHEME_END = "://"


def object_sources(node: NodeFacts) -> tuple[str, ...]:
    """Return the artefact sources of the tools that a pool needs."""
    return tuple(sorted({_TOOLS[_scheme(storage)] for _, storage in _buckets(node)}))


@role_compiler(
    "object_mount",
    sources=("mountpoint-s3", "gcsfuse", "blobfuse2"),
    chosen=object_sources,
    storage=("object",),
    after=("lustre_server",),
)
def object_mount_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role object_mount for the buckets whose kind has a tool."""
    tools = object_sources(node)
    if not node.is_machine or not tools:
        return []
    mounts: dict[str, Json] = {
        "object_mount_mounts": [_mount(name, storage) for name, storage in _buckets(node)]
    }
    install: dict[str, Json] = {"object_mount_tools": [_tool(node, tool) for tool in tools]}
    phases: tuple[tuple[Phase, dict[str, Json]], ...] = (
        ("install", install),
        ("configure", install | mounts),
        ("join", mounts),
        ("verify", install | mounts),
    )
    return [
        Step(stage=Stage.STORAGE, role="object_mount", phase=phase, variables=variables)
        for phase, variables in phases
    ]


def _buckets(node: NodeFacts) -> list[tuple[str, ObjectStorage]]:
    """Return the buckets that the pool mounts and that a tool can mount."""
    found = [(name, node.spec.storage[name]) for name in node.storage.mounts]
    return [
        (name, storage)
        for name, storage in found
        if isinstance(storage, ObjectStorage) and _scheme(storage) in _TOOLS
    ]


def _scheme(storage: ObjectStorage) -> str:
    return storage.bucket.split(_SCHEME_END, 1)[0]


def _tool(node: NodeFacts, tool: str) -> dict[str, Json]:
    """Return a tool with its version, and its file where it comes as one."""
    source = node.catalog.sources[tool]
    version = cast("str", source.pinned)
    found: dict[str, Json] = {"name": tool, "version": version}
    if source.files:
        cpu = None if node.machine is None else node.machine.cpu
        arch = "x86_64" if cpu is None else cpu.architecture
        found |= file_variables(node, tool, f"tar-{arch}", version)
    return found


def _mount(name: str, storage: ObjectStorage) -> dict[str, Json]:
    """Return a mount; az://ACCOUNT/CONTAINER/PREFIX has one part more than the others."""
    scheme, path = storage.bucket.split(_SCHEME_END, 1)
    account, rest = path.split("/", 1) if scheme == "az" and "/" in path else ("", path)
    bucket, _, prefix = rest.partition("/")
    return {
        "name": name,
        "tool": _TOOLS[scheme],
        "path": mount_point(storage),
        "account": account,
        "bucket": bucket,
        "prefix": prefix.strip("/"),
        "read_only": storage.read_only,
        **({"hierarchical": True} if storage.hierarchical_namespace and scheme == "az" else {}),
        "cache_mib": 0 if storage.cache is None else int(storage.cache.value // 2**20),
        "options": list(storage.options),
    }
