"""What the spec language can say and this version doesn't act on yet: said, never passed over.

`validate` checks the whole language. `plan` and `up` name each part of a spec that they leave out,
and refuse where nothing could run without it. An entry goes when its part is built.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ....inventory.compile.roles import compiled_components, compiled_fabrics, compiled_storage
from ....schemas.catalog import load_catalog
from ....schemas.diagnostics import Diagnostic, PathTuple, Severity
from ....schemas.load import Loaded
from ....schemas.spec import KubernetesScheduler, Software
from ....stacks.registry import names
from ...cluster.outcome import LifecycleError

_LEFT_OUT: tuple[tuple[PathTuple, str], ...] = (
    (("monitoring",), "monitoring"),
    (("sites", "*", "proxy"), "proxies"),
    (("pools", "*", "software", "containers"), "containers of single pools"),
    (("pools", "*", "software", "slurm"), "another Slurm for single pools"),
)  # fmt: skip
"""Paths ("*": any name) that are checked and then left out, and what they are."""

_NO_VERSIONS = ("distribution", "sources")
"""Keys of `software` that are no version to install: what nodes are, and where packages are."""


def _left_out_software() -> tuple[tuple[PathTuple, str], ...]:
    """Return the versions that no role acts on yet, of the cluster and of pools."""
    acted_on = {*compiled_components(), *_NO_VERSIONS}
    keys = [key for key in Software.__struct_fields__ if key not in acted_on]
    return tuple(
        ((*place, "software", key), f"software {key}")
        for key in keys
        for place in ((), ("pools", "*"))
    )


def unbuilt(loaded: Loaded) -> tuple[Diagnostic, ...]:
    """Return a warning for each part that is left out, an error where nothing runs without it."""
    if loaded.spec is None or loaded.document is None:
        return ()
    return tuple(
        Diagnostic(
            code="GC950" if severity is Severity.ERROR else "GC951",
            severity=severity,
            summary=f"{what} is not built yet"
            if severity is Severity.ERROR
            else f"not built yet, so left out: {what}",
            path=path,
            file=loaded.file,
            span=loaded.document.locate(path, key=severity is Severity.WARNING),
        )
        for severity, path, what in [*_needed(loaded), *_left_out(loaded)]
    )


def refuse_unbuilt(loaded: Loaded) -> tuple[Diagnostic, ...]:
    """Return the warnings of `unbuilt`.

    Args:
        loaded: a spec without errors.

    Raises:
        LifecycleError: a part is missing that nothing can run without.
    """
    found = unbuilt(loaded)
    errors = [one for one in found if one.is_error]
    if errors:
        raise NotBuiltError(loaded, *errors)
    return found


class NotBuiltError(LifecycleError):
    """The spec asks for what this version can't do; `loaded` carries the text for the excerpts."""

    def __init__(self, loaded: Loaded, *diagnostics: Diagnostic) -> None:
        """Hold the diagnostics and the text they point into."""
        super().__init__(*diagnostics)
        self.loaded = loaded


def _needed(loaded: Loaded) -> Iterator[tuple[Severity, PathTuple, str]]:
    """Yield what `up` can't do without."""
    spec = loaded.spec
    if spec is None:
        return
    for name, site in spec.sites.items():
        if site.provider not in names():
            yield Severity.ERROR, ("sites", name, "provider"), f"provider {site.provider}"
    kubernetes = spec.scheduler
    if isinstance(kubernetes, KubernetesScheduler) and spec.converge == "pull":
        yield Severity.ERROR, ("converge",), "converge: pull under Kubernetes"


def _left_out(loaded: Loaded) -> Iterator[tuple[Severity, PathTuple, str]]:
    """Yield the first place of each part that is left out."""
    data = loaded.document.data if loaded.document is not None else {}
    for pattern, what in (*_LEFT_OUT, *_left_out_software()):
        places = list(_places(data, pattern, ()))
        if places:
            more = f" (here and in {len(places) - 1} more)" if len(places) > 1 else ""
            yield Severity.WARNING, places[0], f"{what}{more}"
    for path in _left_out_fabrics(loaded):
        yield Severity.WARNING, path, "the fabric's set-up on nodes"
    for path in _left_out_tunnels(loaded):
        yield Severity.WARNING, path, "a tunnel between a cloud and containers"
    for path in _left_out_nodes(loaded):
        yield Severity.WARNING, path, "nodes that come and go under Kubernetes"
    for name, storage in loaded.spec.storage.items() if loaded.spec is not None else ():
        kind = str(storage.__struct_config__.tag)
        if kind not in compiled_storage():
            yield Severity.WARNING, ("storage", name), f"storage of type {kind}"


def _left_out_nodes(loaded: Loaded) -> Iterator[PathTuple]:
    """Yield counts of which only the least is made: nothing asks for more when pods wait."""
    if loaded.spec is not None and isinstance(loaded.spec.scheduler, KubernetesScheduler):
        for name, pool in loaded.spec.pools.items():
            if pool.is_elastic:
                yield "pools", name, "count"


def _left_out_tunnels(loaded: Loaded) -> Iterator[PathTuple]:
    """Yield tunnels from a cloud to what this machine has: only between such sites it routes."""
    spec = loaded.spec
    for index, link in enumerate(() if spec is None else spec.links):
        sites = () if spec is None else [spec.sites[name] for name in link.between]
        half = {site.is_cloud for site in sites} == {True, False}
        if link.via == "wireguard" and half and any(site.is_made_here for site in sites):
            yield "links", index


def _left_out_fabrics(loaded: Loaded) -> Iterator[PathTuple]:
    """Yield the pools' fabrics that need something of the nodes which no role does."""
    pools = {} if loaded.spec is None else loaded.spec.pools
    if not any(pool.fabric for pool in pools.values()):
        return

    fabrics = load_catalog().fabrics
    for name, pool in pools.items():
        plugin = fabrics[pool.fabric].plugin if pool.fabric else None
        if plugin is not None and plugin not in compiled_fabrics():
            yield "pools", name, "fabric"


def _places(data: Any, pattern: PathTuple, done: PathTuple) -> Iterator[PathTuple]:
    """Yield the paths of plain data that a pattern fits."""
    if not pattern:
        yield done
        return
    if not isinstance(data, dict):
        return
    step, *rest = pattern
    for key in data if step == "*" else (step,):
        if key in data:
            yield from _places(data[key], tuple(rest), (*done, key))
