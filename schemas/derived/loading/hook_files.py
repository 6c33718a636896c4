"""Files of hooks next to a spec, and the spec with them read: nothing else is needed then."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec
import yaml

from ...diagnostics import Diagnostic, PathTuple, Severity
from ...spec import ClusterHook, RoleHook
from ...structure.document import Document, Structured
from ...structure.fix.patches import place_of
from ...structure.source import decode, read_source

BINARY = "data:;base64,"
"""Begins the content of a file that is no text (RFC 2397)."""
MOST_BYTES = 1_000_000
"""Of all hooks' files together: they are kept in the state with each spec that is applied."""
_MISSING = "does not exist"
_LEFT_OUT = frozenset({".git", "__pycache__", ".molecule", "molecule"})
"""Folders of a role that run on no node."""
_ROLE_PARTS = 2  # NAMESPACE.COLLECTION.ROLE has more dots than this, less one


class WithHooks(NamedTuple):
    """A spec, the files of its hooks read."""

    structured: Structured
    diagnostics: tuple[Diagnostic, ...]
    edits: tuple[tuple[int, int, str], ...]
    """Start, end and what replaces it in the spec's text: `text:` or `files:` for each `path:`."""


class _UnusableError(Exception):
    """What is wrong with the file or folder that a hook names."""


def with_hooks(
    structured: Structured, document: Document, *, folder: Path, spec: str, check: bool = True
) -> WithHooks:
    """Read the files and put them into the typed hooks and into the text.

    Args:
        structured: the typed parts; hooks is one of them.
        document: the text.
        folder: where the paths of files start.
        spec: name of the spec's file, for diagnostics.
        check: also look at what is in the spec itself; what was applied was looked at then.
    """
    hooks: dict[str, ClusterHook] = dict(structured.parts["hooks"])
    found: list[Diagnostic] = []
    edits: list[tuple[int, int, str]] = []
    for name, hook in hooks.items():
        at: PathTuple = ("hooks", name)
        try:
            if check:
                _refuse_several(hook)
            if hook.path is None:
                continue
            at = ("hooks", name, "path")
            read = _read(hook, folder / Path(hook.path).expanduser())
        except _UnusableError as unusable:
            found.append(_wrong(document, at, str(unusable), spec))
            continue
        hooks[name] = msgspec.structs.replace(hook, path=None, **read)
        place = place_of(document, at)
        if place is not None:
            edits += [(place.start, place.end, _written(read))]
    size = sum(len(msgspec.json.encode(hook, enc_hook=str)) for hook in hooks.values())
    if check and size > MOST_BYTES:
        why = f"the files of all hooks take {size} bytes, more than {MOST_BYTES}"
        found.append(_wrong(document, ("hooks",), why, spec))
    value = structured.value
    replaced = msgspec.structs.replace(
        structured,
        parts={**structured.parts, "hooks": hooks},
        value=None if value is None else msgspec.structs.replace(value, hooks=hooks),
    )
    return WithHooks(replaced, tuple(found), tuple(edits))


def _refuse_several(hook: ClusterHook) -> None:
    """Refuse a hook that names none or several sources of what it runs."""
    keys = ("path", "name", "files") if isinstance(hook, RoleHook) else ("path", "text")
    given = [key for key in keys if getattr(hook, key)]
    if len(given) != 1:
        wanted = "path or name" if isinstance(hook, RoleHook) else "path or text"
        what = " and ".join(given) if given else "nothing"
        raise _UnusableError(f"it says {what} of where to find it: give {wanted}")
    if isinstance(hook, RoleHook) and hook.files:
        refuse_role(hook.files, hook.tasks)
    elif not isinstance(hook, RoleHook) and hook.text is not None:
        _refuse_program(hook.text, hook.sha256)


def _read(hook: ClusterHook, path: Path) -> dict[str, str | dict[str, str]]:
    """Return the fields that replace a hook's path."""
    if not isinstance(hook, RoleHook):
        text = _text(path, hook.path or "")
        _refuse_program(text, hook.sha256)
        return {"text": text}
    if not path.is_dir():
        what = "is a file, not the folder of a role" if path.exists() else _MISSING
        raise _UnusableError(f"{hook.path} {what}")
    files = dict(_role_files(path))
    refuse_role(files, hook.tasks)
    return {"files": files}


def _text(path: Path, written: str) -> str:
    source = read_source(path)
    text = source if isinstance(source, Diagnostic) else decode(source, file=str(path))
    if isinstance(text, Diagnostic):
        raise _UnusableError(text.summary.replace(str(path), written))
    return text


def _refuse_program(text: str, sha256: str | None) -> None:
    """Refuse what the kernel can't start, and a file that isn't the one that was meant."""
    first = text.partition("\n")[0]
    if not first.startswith("#!"):
        raise _UnusableError("its first line does not name what runs it, such as #!/bin/bash")
    if first.endswith("\r"):
        raise _UnusableError("its lines end with a carriage return: save it with Unix line ends")
    digest = hashlib.sha256(text.encode()).hexdigest()
    if sha256 is not None and digest != sha256:
        raise _UnusableError(f"its SHA-256 is {digest}, not the one that the hook says")


def _role_files(root: Path) -> Iterator[tuple[str, str]]:
    """Yield path and content of a role's files, sorted; what isn't text as base64."""
    top = root.resolve()
    total = 0
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root)
        if _LEFT_OUT & set(name.parts) or path.suffix == ".pyc":
            continue
        if path.is_symlink() and (path.is_dir() or not path.resolve().is_relative_to(top)):
            raise _UnusableError(f"{name} is a link to a folder or out of the role")
        if path.is_dir():
            continue
        try:
            content = path.read_bytes()
        except OSError as error:
            raise _UnusableError(f"{name} can't be read: {error.strerror}") from error
        total += len(content)
        if total > MOST_BYTES:
            raise _UnusableError(f"the role takes more than {MOST_BYTES} bytes")
        yield name.as_posix(), content_text(content)


def content_text(content: bytes) -> str:
    """Return a file's content as it is in a spec."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text or text.startswith(BINARY):
        return BINARY + base64.b64encode(content).decode()
    return text


def refuse_role(files: Mapping[str, str], tasks: str) -> None:
    """Refuse files that are no role that Ansible can run with nothing else."""
    outside = next((n for n in files if n.startswith("/") or ".." in n.split("/")), None)
    if outside is not None:
        raise _UnusableError(f"{outside} leads out of the role")
    entries = [f"tasks/{tasks}.{ending}" for ending in ("yml", "yaml")]
    entry = next((name for name in entries if name in files), None)
    if entry is None:
        raise _UnusableError(f"the role has no {entries[0]}")
    if not isinstance(_node(files[entry], entry), yaml.SequenceNode | None):
        raise _UnusableError(f"{entry} holds no list of tasks")
    for name in ("meta/main.yml", "meta/main.yaml"):
        for needed in _dependencies(files.get(name, ""), name):
            if needed.count(".") < _ROLE_PARTS:
                raise _UnusableError(
                    f"{name} needs the role {needed}, which would not be there: give it a hook of "
                    "its own, or take it from a collection"
                )


def _node(text: str, name: str) -> yaml.Node | None:
    try:
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark is not None else ""
        problem = getattr(error, "problem", None) or "it can't be read"
        raise _UnusableError(f"{name} is no YAML: {where}{problem}") from error


def _dependencies(text: str, name: str) -> Iterator[str]:
    """Yield the names of the roles that a role's meta/main.yml depends on."""
    listed = _entry(_node(text, name), "dependencies")
    for item in listed.value if isinstance(listed, yaml.SequenceNode) else ():
        named = item if isinstance(item, yaml.ScalarNode) else _entry(item, "role", "name")
        if isinstance(named, yaml.ScalarNode):
            yield str(named.value)


def _entry(node: yaml.Node | None, *keys: str) -> yaml.Node | None:
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return next((value for key, value in pairs if key.value in keys), None)


def _written(read: Mapping[str, str | dict[str, str]]) -> str:
    """Return the key and value as YAML on one line, which JSON is."""
    ((key, value),) = read.items()
    return f"{key}: {msgspec.json.encode(value).decode()}"


def _wrong(document: Document, path: PathTuple, summary: str, spec: str) -> Diagnostic:
    return Diagnostic(
        code="GC028",
        severity=Severity.ERROR,
        summary=f"{'.'.join(map(str, path[:2]))}: {summary}",
        path=path,
        file=spec,
        span=document.locate(path),
        hint="path is a path from the folder of the spec" if _MISSING in summary else "",
    )
