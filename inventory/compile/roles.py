"""The list of role compilers: what makes steps of a role out of what is known of a pool's nodes.

Each is registered where it is defined, by `@role_compiler("ROLE")` above its function, and found
here: a new role needs no line in any other module. `compile_cluster` calls all of them alike.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import NamedTuple, TypeAlias

import msgspec

from .node import NodeFacts
from .steps import Stage, Step

Compile: TypeAlias = Callable[[NodeFacts], list[Step]]
"""Returns the steps of a role on a pool's nodes; none where they don't need it."""
Choose: TypeAlias = Callable[[NodeFacts], tuple[str, ...]]
_STAGES = list(Stage)
_PACKAGE = __name__.rpartition(".")[0]


class RoleCompiler(NamedTuple):
    """A role, what of the spec it acts on, and the artefact sources that its packages come from."""

    name: str
    """Of the role; where two compilers make steps of one role, of what the second is for."""
    steps: Compile
    sources: tuple[str, ...] = ()
    """Names in `schemas/catalog/sources/`; `package_sources` gives their repositories to the nodes
    that run the role."""
    chosen: Choose | None = None
    """Selects which of the sources these nodes use; None: all."""
    components: tuple[str, ...] = ()
    """Versions of the spec's `software` that it uses; `up` reports the others as left out."""
    storage: tuple[str, ...] = ()
    """Kinds of storage, by their `type:`, that it mounts or serves."""
    plugins: tuple[str, ...] = ()
    """Fabrics that it sets up, by the catalog's key of what drives them."""
    after: tuple[str, ...] = ()
    """Role compilers whose steps come before its own within a stage."""
    removed: bool = False
    """Hosts whose spec no longer needs the role run its phase `remove`."""
    reads_sources: bool = False
    """It is compiled after all others, for nodes with the artefact sources of those."""

    def sources_of(self, node: NodeFacts) -> tuple[str, ...]:
        """Return the artefact sources that a pool's nodes take for this role."""
        return self.sources if self.chosen is None else self.chosen(node)


_registered: dict[str, RoleCompiler] = {}


def role_compiler(  # one argument for each declaration of a role
    name: str,
    *,
    sources: tuple[str, ...] = (),
    chosen: Choose | None = None,
    components: tuple[str, ...] = (),
    storage: tuple[str, ...] = (),
    plugins: tuple[str, ...] = (),
    after: tuple[str, ...] = (),
    removed: bool = False,
    reads_sources: bool = False,
) -> Callable[[Compile], Compile]:
    """Register the function below as what compiles a role; the arguments are `RoleCompiler`'s.

    Raises:
        ValueError: the name is taken.
    """

    def register(steps: Compile) -> Compile:
        if name in _registered:
            raise ValueError(name)
        _registered[name] = RoleCompiler(
            name,
            steps,
            sources,
            chosen,
            components,
            storage,
            plugins,
            after,
            removed,
            reads_sources,
        )
        return steps

    return register


@cache
def role_compilers() -> tuple[RoleCompiler, ...]:
    """Return all role compilers in the order that their steps have within a stage.

    They are sorted by module name and position in it, each behind those it must follow.

    Raises:
        KeyError: one must follow a role without a compiler.
    """
    package = import_module(_PACKAGE)
    for module in pkgutil.walk_packages(package.__path__, f"{_PACKAGE}."):
        import_module(module.name)
    ordered: dict[str, RoleCompiler] = {}
    for role in sorted(_registered.values(), key=_place):
        _add(role, ordered)
    return tuple(ordered.values())


def node_steps(node: NodeFacts) -> tuple[Step, ...]:
    """Return all steps of a pool's nodes, by stage, then in the order of the role compilers.

    Steps of hooks are before or after all others of their stage.
    """
    compiled = {role: role.steps(node) for role in role_compilers() if not role.reads_sources}
    node = msgspec.structs.replace(node, sources=_sources(node, compiled))
    steps = [
        step
        for role in role_compilers()
        for step in (role.steps(node) if role.reads_sources else compiled[role])
    ]
    return tuple(sorted(steps, key=lambda step: (_STAGES.index(step.stage), step.order)))


def compiled_components() -> frozenset[str]:
    """Return the keys of the spec's `software` that some role acts on."""
    return frozenset(key for role in role_compilers() for key in role.components)


def compiled_storage() -> frozenset[str]:
    """Return the kinds of storage that some role mounts or serves."""
    return frozenset(kind for role in role_compilers() for kind in role.storage)


def compiled_fabrics() -> frozenset[str]:
    """Return the fabrics that some role sets up, by the catalog's key of what drives them."""
    return frozenset(key for role in role_compilers() for key in role.plugins)


@cache
def removal_steps() -> tuple[Step, ...]:
    """Return the steps of the phases `remove`, dependent roles first; they need no variables.

    Tunnels between sites and their routes are removed completely. What other roles leave behind is
    visible: packages stay, and slurm.conf stops a daemon of Slurm.
    """
    return tuple(
        Step(stage=Stage.BASE, role=role.name, phase="remove", variables={}, spares_jobs=True)
        for role in reversed(role_compilers())
        if role.removed
    )


def must_remove(step: Step, compiled: Collection[str], stamped: Collection[str]) -> bool:
    """Whether a host must run one of `removal_steps`.

    Args:
        step: the step.
        compiled: the roles that the host's pool is compiled to.
        stamped: steps whose stamps the host has.
    """
    return step.role not in compiled and f"{step.role}.configure" in stamped


def _sources(node: NodeFacts, compiled: Mapping[RoleCompiler, Sequence[Step]]) -> tuple[str, ...]:
    """Return the artefact sources of the roles that have steps, each once, by stage."""
    found = [
        (_STAGES.index(steps[0].stage), role)
        for role, steps in compiled.items()
        if role.sources and steps
    ]
    found.sort(key=lambda item: item[0])
    return tuple(dict.fromkeys(source for _, role in found for source in role.sources_of(node)))


def _place(role: RoleCompiler) -> tuple[str, int]:
    """Return where a role compiler is defined: its module and line."""
    return role.steps.__module__, role.steps.__code__.co_firstlineno


def _add(role: RoleCompiler, ordered: dict[str, RoleCompiler]) -> None:
    for name in role.after:
        _add(_registered[name], ordered)
    ordered.setdefault(role.name, role)
