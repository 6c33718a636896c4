"""What blocks a local site, found before anything is created."""

from __future__ import annotations

import shutil
from pathlib import Path

from ...schemas.diagnostics import Diagnostic, Severity
from ..provider import ProviderError, Resource, SiteContext, provider_error
from . import network, survey
from .engine import Engine, EngineFacts, runtime_flags
from .image import base_image
from .survey import Survey

_INOTIFY_PER_NODE = 5
"""Inotify instances of a node's systemd; with 128 in all, nodes past about 25 were degraded."""
_MEMORY_PER_NODE = 96 * 2**20
"""Bytes: 12-29 MB seen idle, with room for slurmd and a small job."""
_MEMORY_BASE = 512 * 2**20
_KUBERNETES = {"controller": (30, 640 * 2**20), "": (16, 192 * 2**20)}
"""Role of a node of Kubernetes -> inotify instances and bytes of memory; "": all others. Seen on
nodes that run 1.35: 29 and 0.44 GB of a control plane, 16 and 75 MB of a node without jobs."""
_KUBERNETES_DISK = 640 * 2**20
"""Bytes of a node: its programs, and the images unpacked."""
_DISK_NEW_IMAGE = 3 * 2**30
"""Bytes: archive, imported base and baked image together stayed below this."""
_DISK_PER_NODE = 64 * 2**20


def findings(context: SiteContext) -> tuple[Diagnostic, ...]:
    """Return all findings; errors mean that apply would fail."""
    try:
        found = survey.survey(context)
        if all(c.effect == "keep" for c in survey.changes(context, found)):
            return ()
        facts = found.engine.facts()
    except ProviderError as error:
        return error.diagnostics
    wanted = [r for r in survey.graph(context.spec, context.site).resources if r.kind == "node"]
    return (
        *_rights(found.engine, facts),
        *_image(context, found.engine),
        *_subnet(context, found),
        *_limits(wanted, [r for r in wanted if r.name not in found.nodes], facts),
    )


def _rights(engine: Engine, facts: EngineFacts) -> tuple[Diagnostic, ...]:
    if facts.rootless:
        return provider_error(
            "GC919",
            f"{engine.name} runs without root: this machine could not reach its nodes' addresses",
            hint="run the same command with sudo",
        ).diagnostics
    if engine.name == "docker":
        return ()
    try:
        runtime_flags(lambda: facts)
    except ProviderError as error:
        return error.diagnostics
    return ()


def _image(context: SiteContext, engine: Engine) -> tuple[Diagnostic, ...]:
    if context.image is not None or engine.has_image(
        base_image.base_reference(survey.described(context.spec, context.site).image)
    ):
        return ()
    lacking = base_image.missing_tool()
    return () if lacking is None else lacking.diagnostics


def _subnet(context: SiteContext, found: Survey) -> tuple[Diagnostic, ...]:
    try:
        refusal = survey.obstacle(context, found)
        if refusal is not None:
            return refusal.diagnostics
        if found.network is None:
            cidr = survey.described(context.spec, context.site).network.cidr
            used = network.used_networks(
                (s for n in found.networks for s in n.subnets), network.host_routes()
            )
            name = survey.network_name(context.spec, context.site)
            subnet = next(network.candidates(cidr, name, used), None)
            if subnet is None:
                return provider_error(
                    "GC915",
                    f"no /24 of {network.AUTO_RANGE} is free on this machine",
                    hint="set network.cidr of the site to a free network",
                ).diagnostics
            names = [h.name for h in survey.planned_hosts(context.spec, context.site)]
            network.assign(subnet, names, {})
    except ProviderError as error:
        return error.diagnostics
    return ()


def _needs(node: Resource) -> tuple[int, int, int]:
    """Return the inotify instances and the bytes of memory and of disk that a node takes."""
    if node.properties.get("scheduler") != "kubernetes":
        return _INOTIFY_PER_NODE, _MEMORY_PER_NODE, _DISK_PER_NODE
    role = str(node.properties["role"])
    return *_KUBERNETES.get(role, _KUBERNETES[""]), _KUBERNETES_DISK


def _limits(
    wanted: list[Resource], missing: list[Resource], facts: EngineFacts
) -> tuple[Diagnostic, ...]:
    warnings = []
    instances = int(Path("/proc/sys/fs/inotify/max_user_instances").read_text())
    watched = sum(_needs(node)[0] for node in wanted)
    if watched > instances:
        warnings.append(
            _warning(
                f"{len(wanted)} nodes want about {watched} inotify instances, this machine "
                f"allows {instances}: some may be degraded",
                f"sudo sysctl fs.inotify.max_user_instances={max(1024, watched * 2)}",
            )
        )
    memory = _MEMORY_BASE + sum(_needs(node)[1] for node in missing) if missing else 0
    free = _available_memory()
    if memory > free:
        warnings.append(
            _warning(
                f"{len(missing)} nodes need about {memory >> 20} MiB of memory; "
                f"{free >> 20} are free",
                "request fewer nodes, or free some memory",
            )
        )
    disk = _DISK_NEW_IMAGE + sum(_needs(node)[2] for node in missing) if missing else 0
    room = shutil.disk_usage(facts.storage).free
    if disk > room:
        warnings.append(
            _warning(
                f"nodes and their images need about {disk >> 20} MiB in {facts.storage}, "
                f"{room >> 20} MiB are free",
                "free some space there: podman system prune",
            )
        )
    return tuple(warnings)


def _warning(summary: str, hint: str) -> Diagnostic:
    return Diagnostic(code="GC914", severity=Severity.WARNING, summary=summary, hint=hint)


def _available_memory() -> int:
    """Return MemAvailable in bytes."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0
