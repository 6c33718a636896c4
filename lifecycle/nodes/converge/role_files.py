"""The roles that travel with gcluster: the hash of what a phase runs, and the traces it leaves.

Traces are what a step leaves on a node that can be inspected later: files, packages, mounts,
settings. Each role declares them for its own phases (`roles/ROLE/meta/traces.yml`). What is known
only while a spec is compiled, such as where its storage is mounted, comes from the variables of the
step.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec
import yaml

import gcluster

from ....inventory.compile import Step
from ....inventory.compile.hooks import HookStep
from ....schemas.structure.decoding import convert

_MODULE = re.compile(rb"\bgcluster\.cluster\.(\w+):")
_IMPORT = re.compile(rb"^from (?:\.|\.\.module_utils\.)(\w+) import", re.MULTILINE)

NOT_RUN = frozenset({"meta"})
"""Folders of a role that only describe it; nothing in them runs on a node."""


def collections_path() -> Path:
    """Return the directory to name in ANSIBLE_COLLECTIONS_PATH (wheel, editable or checkout)."""
    return Path(next(iter(gcluster.__path__))).resolve()


def role_path(role: str) -> Path:
    """Return the folder of a role of the collection gcluster.cluster."""
    return (_collection() / "roles" / role).resolve()


def plugins_path() -> Path:
    """Return the folder of the collection's modules and what they share."""
    return (_collection() / "plugins").resolve()


def _collection() -> Path:
    return collections_path() / "ansible_collections" / "gcluster" / "cluster"


@functools.cache
def role_digest(role: str, phase: str) -> str:
    """Return the SHA-256 in hex of the files that a phase may use.

    These are its own tasks (PHASE.yml, and what it includes from PHASE/), the collection's modules
    that tasks name, with the module_utils that those import, and all of the role but
    the other phases' tasks: templates, files, variables, defaults and handlers count for every
    phase, so a change to one of them runs a phase again that may not need it, and never the other
    way round.
    """
    digest = hashlib.sha256()
    named: set[str] = set()
    for name, top, below, content, modules in files_of(role):
        if top == "tasks" and below not in {"", phase, f"{phase}.yml"}:
            continue  # of another phase
        digest.update(f"{name}\0".encode())
        digest.update(content)
        named |= modules
    for plugin in plugins_of(frozenset(named)):
        digest.update(f"{plugin}\0".encode())
        digest.update(hashlib.sha256((plugins_path() / plugin).read_bytes()).digest())
    return digest.hexdigest()


def files_digest(step: Step) -> str:
    """Return the hash of the files of gcluster's that a step runs; "" of a role of the user's."""
    role = our_role(step)
    return "" if role is None else role_digest(role, step.phase)


def our_role(step: Step) -> str | None:
    """Return the role of this collection that carries out a step; None: one of the user's does."""
    if not isinstance(step, HookStep):
        return step.role
    return "hooks" if step.user_role is None else None


def role_plugins(role: str) -> tuple[str, ...]:
    """Return the modules that any of a role's tasks name, and what they import, as paths."""
    return plugins_of(frozenset[str]().union(*(modules for *_, modules in files_of(role))))


@functools.cache
def plugins_of(modules: frozenset[str]) -> tuple[str, ...]:
    """Return the files of modules and of the module_utils that they import, below plugins/."""
    root = plugins_path()
    found: set[str] = set()
    ahead = {f"modules/{name}.py" for name in modules}
    while ahead:
        path = ahead.pop()
        if path in found or not (root / path).is_file():
            continue  # a role's name in the place of a module's
        found.add(path)
        imported = _IMPORT.findall((root / path).read_bytes())
        ahead |= {f"module_utils/{name.decode()}.py" for name in imported}
    return tuple(sorted(found))


@functools.cache
def files_of(role: str) -> tuple[tuple[str, str, str, bytes, frozenset[str]], ...]:
    """Return path, its folder, what comes below that, SHA-256 of the content, modules called.

    Read once a run.
    """
    root = role_path(role)
    found = []
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        top, *below = relative.parts
        if path.is_dir() or top in NOT_RUN or path.suffix == ".pyc":
            continue
        content = path.read_bytes()
        calls = _MODULE.findall(content) if top in {"tasks", "handlers"} else []
        modules = frozenset(name.decode() for name in calls)
        digest = hashlib.sha256(content).digest()
        found.append((str(relative), top, below[0] if below else "", digest, modules))
    return tuple(found)


class PhaseTraces(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The traces that a role declares for one phase."""

    files: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    """Files whose content is a secret."""
    copies: dict[str, str] = {}
    """Folder below the role's files/ -> folder on the node that gets all that is in it."""
    blocks: tuple[str, ...] = ()
    """Files of which only the part between gcluster's marks is its own."""
    packages: tuple[str, ...] = ()
    """Names and patterns as dpkg-query and rpm -qa take them; those that aren't there are none."""
    units: tuple[str, ...] = ()
    sysctls: tuple[str, ...] = ()
    """Kernel settings, by name."""
    sysctl_files: tuple[str, ...] = ()
    """Files of kernel settings: the files and what the kernel has of each setting."""
    each: dict[str, tuple[str, ...]] = {}
    """Variable of the step with a list -> a file for each of its entries, by its `name`."""
    paths: tuple[str, ...] = ()
    """Variables of the step that map the paths of files to what is in them."""
    people: str = ""
    """Variable of the step that lists people: their accounts."""
    watched: tuple[str, ...] = ()
    """Files, and patterns of files, that decide who can log in; only roles and images write them.
    They are sealed once: later additions and changes stay drift."""
    accounts: bool = False
    """The accounts that can log in, and who is root besides root; sealed once, as `watched`."""
    mounts: str = ""
    """Variable of the step that lists mounts with their `path`."""
    mount_points: tuple[str, ...] = ()
    """Where nothing else is to be mounted than what is there by then."""
    kernel: bool = False
    """The kernel that runs, and its command line."""
    links: bool = False
    """Network interfaces and fabric ports: state, MTU, rate."""


class Traces(msgspec.Struct, frozen=True, kw_only=True):
    """What is checked on a node; each list sorted and without duplicates."""

    files: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    sysctls: tuple[str, ...] = ()
    sysctl_files: tuple[str, ...] = ()
    mounts: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    watched: tuple[str, ...] = ()
    accounts: bool = False
    kernel: bool = False
    links: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        """All files that are checked as a whole."""
        return tuple(sorted({*self.files, *self.keys, *self.sysctl_files}))


def traces_of(step: Step) -> Traces:
    """Return what a step leaves, by its role and its variables."""
    role = our_role(step)
    traces = None if role is None else phase_traces(role).get(step.phase)
    if role is None or traces is None:
        return Traces()
    people = _listed(step, traces.people, "name")
    named = (
        path.replace("NAME", name)
        for variable, paths in traces.each.items()
        for name in _listed(step, variable, "name")
        for path in paths
    )
    paths = (path for variable in traces.paths for path in step.variables.get(variable, ()))
    files = {*traces.files, *_copied(role, step.phase), *named, *paths}
    return Traces(
        files=tuple(sorted(files)),
        keys=tuple(sorted(traces.keys)),
        blocks=tuple(sorted(traces.blocks)),
        packages=tuple(sorted(traces.packages)),
        units=tuple(sorted(traces.units)),
        sysctls=tuple(sorted(traces.sysctls)),
        sysctl_files=tuple(sorted(traces.sysctl_files)),
        mounts=tuple(sorted({*traces.mount_points, *_listed(step, traces.mounts, "path")})),
        users=tuple(sorted(people)),
        watched=tuple(sorted(traces.watched)),
        accounts=traces.accounts,
        kernel=traces.kernel,
        links=traces.links,
    )


def merged(every: Iterable[Traces]) -> Traces:
    """Return the union, so that it is read at once."""
    found = list(every)
    lists = {
        name: tuple(sorted({item for traces in found for item in getattr(traces, name)}))
        for name in Traces.__struct_fields__
        if name not in {"accounts", "kernel", "links"}
    }
    return Traces(
        **lists,
        accounts=any(traces.accounts for traces in found),
        kernel=any(traces.kernel for traces in found),
        links=any(traces.links for traces in found),
    )


@functools.cache
def phase_traces(role: str) -> dict[str, PhaseTraces]:
    """Return phase -> the traces that the role declares."""
    text = (role_path(role) / "meta" / "traces.yml").read_text(encoding="utf-8")
    return convert(yaml.safe_load(text), dict[str, PhaseTraces])


@functools.cache
def _copied(role: str, phase: str) -> frozenset[str]:
    """Return the files on the node that are copies of whole folders of a role."""
    found = set()
    for folder, there in phase_traces(role)[phase].copies.items():
        root = role_path(role) / "files" / folder
        files = (path for path in root.rglob("*") if path.is_file() and path.suffix != ".pyc")
        found |= {f"{there}/{path.relative_to(root)}" for path in files}
    return frozenset(found)


def _listed(step: Step, variable: str, field: str) -> frozenset[str]:
    """Return a field of all that a variable of a step lists."""
    listed = step.variables.get(variable) if variable else None
    return frozenset(str(item[field]) for item in listed or ())
