"""A plan that was approved, as a file: what `up --plan` does, and nothing else.

It is bound to the spec, to the state, to the version of gcluster that made it, and to each line of
itself. When one of them changed since, it is refused, with what changed. The lines are made from
the types (every field, but for ages and explanations), so that a field that is added to a plan is
compared from then on.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from difflib import unified_diff
from pathlib import Path
from typing import Any, Literal

import msgspec

import gcluster

from ...schemas.structure.decoding import decode_json
from ...stacks.io import atomic
from ...stacks.provider import Resource, ResourceChange
from ..cluster.cluster import Cluster
from ..cluster.outcome import Exit, LifecycleError, failure
from ..operations.burst.lock import LOCK as BURST_LOCK
from ..state import Event
from ..state.store import utc_now
from .changes import Plan
from .spec_fields import differing

_SHOWN = 12
"""Fields of the spec that are named, of those that moved."""
_LINES = 200
"""Lines of a plan that are shown, of those that moved."""


class PlanFile(msgspec.Struct, frozen=True, kw_only=True):
    """One approved plan and all that it holds for."""

    format: Literal["gcluster/plan/v1"] = "gcluster/plan/v1"
    gcluster: str
    """Version that made it: another one may act differently on the same spec."""
    made: datetime
    cluster: str
    state: str
    """State URL."""
    state_id: str
    """Random id of the state; "" where nothing was ever written."""
    serial: int
    """Number of the last event that counts; see `serial`."""
    spec_hash: str
    spec: dict[str, Any]
    """The spec after parsing, to show which parts of it changed. It holds no secrets."""
    inputs: dict[str, str]
    """Hashes of the user's catalog files and of the bundle's manifest."""
    plan: Plan


def plan_file(cluster: Cluster, plan: Plan) -> PlanFile:
    """Bind a plan to what it was made from."""
    return PlanFile(
        gcluster=gcluster.__version__,
        made=utc_now(),
        cluster=cluster.name,
        state=cluster.state_url,
        state_id=_state_id(cluster),
        serial=serial(cluster),
        spec_hash=cluster.spec_hash,
        spec=msgspec.to_builtins(cluster.spec, enc_hook=str),
        inputs=_inputs(cluster),
        plan=plan,
    )


def write_plan(path: Path, file: PlanFile) -> None:
    """Write a plan file as a whole, 0600.

    Raises:
        LifecycleError: GC901, it can't be written there.
    """
    try:
        atomic.write(path, msgspec.json.format(msgspec.json.encode(file)) + b"\n")
    except OSError as error:
        raise failure("GC901", f"the plan can't be written to {path}: {error.strerror}") from error


def read_plan(path: Path) -> PlanFile:
    """Read a plan file.

    Raises:
        LifecycleError: it can't be read, or isn't one of this version's.
    """
    try:
        return decode_json(path.read_bytes(), PlanFile)
    except OSError as error:
        raise failure(
            "GC901", f"the plan {path} can't be read: {error.strerror}", exit_code=Exit.USAGE
        ) from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise failure(
            "GC901",
            f"{path} is no plan of this version of gcluster",
            detail=str(error),
            hint="gcluster plan SPEC --out FILE makes one",
            exit_code=Exit.REFUSED,
        ) from error


def serial(cluster: Cluster) -> int:
    """Return the number of the last event of a run that changes the cluster.

    What the burst agent writes doesn't count: rented nodes come and go while a plan is read.
    """
    counted = (event.seq for event in cluster.events.read() if _counts(event))
    return max(counted, default=0)


def refuse_moved(cluster: Cluster, file: PlanFile) -> None:
    """Refuse a plan that was made from something else.

    Raises:
        LifecycleError: with all that moved (exit code REFUSED).
    """
    moved = [*_moved(cluster, file)]
    if moved:
        raise _refused(moved)


@contextmanager
def holding(cluster: Cluster, file: PlanFile | None) -> Iterator[None]:
    """Check again under the lock: a run may have ended since the plan was compared.

    Raises:
        LifecycleError: the state changed (exit code REFUSED).
    """
    if file is not None and file.serial != (now := serial(cluster)):
        raise _refused(
            [f"state: serial {file.serial} then, {now} now{_since(cluster, file.serial)}"]
        )
    yield


def refuse_other(file: PlanFile, now: Plan) -> None:
    """Refuse when what would be done now is not what was approved.

    Raises:
        LifecycleError: with the lines that differ (exit code REFUSED).
    """
    approved, proposed = plan_lines(file.plan), plan_lines(now)
    if approved != proposed:
        differ = [
            line
            for line in unified_diff(approved, proposed, lineterm="", n=0)
            if not line.startswith(("---", "+++", "@@"))
        ]
        message = "what would be done moved: - was approved, + would be done now"
        raise _refused([message, *_few(differ, _LINES)])


def _moved(cluster: Cluster, file: PlanFile) -> Iterator[str]:
    if file.gcluster != gcluster.__version__:
        yield f"gcluster: {file.gcluster} made the plan, this is {gcluster.__version__}"
    if file.cluster != cluster.name:
        yield f'cluster: the plan is for "{file.cluster}", not for "{cluster.name}"'
    elif file.spec_hash != cluster.spec_hash:
        now = msgspec.to_builtins(cluster.spec, enc_hook=str)
        paths = [change.path for change in differing(file.spec, now)]
        yield f"spec: {', '.join(_few(paths, _SHOWN)) or 'another one'}"
    was, now_inputs = file.inputs, _inputs(cluster)
    for name in sorted(was.keys() | now_inputs.keys()):
        if was.get(name) != now_inputs.get(name):
            yield f"{name}: another content"
    # Made before there was a state, it is valid for the one created since: the serial shows that.
    is_another = bool(file.state_id) and file.state_id != _state_id(cluster)
    if is_another or file.state != cluster.state_url:
        yield f"state: the plan is for {file.state}, which was another one"
    elif file.serial != (serial_now := serial(cluster)):
        yield f"state: serial {file.serial} then, {serial_now} now{_since(cluster, file.serial)}"


def _since(cluster: Cluster, number: int) -> str:
    runs = {
        event.run: event.actor
        for event in cluster.events.known(since=number)
        if event.run and _counts(event)
    }
    message = ", ".join(f"{run} by {actor}" for run, actor in runs.items())
    return f" (run {message})" if message else ""


def _counts(event: Event) -> bool:
    return set(event.epochs) != {BURST_LOCK}


def _state_id(cluster: Cluster) -> str:
    identity = cluster.store.identity()
    return "" if identity is None else identity.id


def _inputs(cluster: Cluster) -> dict[str, str]:
    found = {f"catalog file {name}": content for name, content in cluster.catalogs.items()}
    if cluster.bundle is not None:
        found["bundle"] = cluster.bundle.encode()
    return {name: hashlib.sha256(content).hexdigest() for name, content in found.items()}


def _few(lines: list[str], most: int) -> list[str]:
    more = len(lines) - most
    return [*lines[:most], f"and {more} more"] if more > 0 else lines


def _refused(moved: list[str]) -> LifecycleError:
    return failure(
        "GC909",
        "the plan no longer holds: nothing was changed",
        detail="\n".join(moved),
        hint="make the plan again, and have it approved again",
        exit_code=Exit.REFUSED,
    )


NOT_HELD: Mapping[str, str] = {
    "Plan.observed_age_s": "it only ages",
    "Plan.job_impact": "jobs come and go; guards that follow from them are held",
    "Plan.preflight": "requested next to a plan; up queries again, and refuses by itself",
    "Plan.kubernetes": "where a bundle lies on one machine; its content is in the steps' digests",
    "StepChange.jobs": "jobs come and go",
    "AccountingPlan.held_back": "names jobs, which come and go; what waits no more is a change",
    "Diagnostic.file": "where the spec lies on one machine",
    "Diagnostic.span": "a comment above moves it",
    "Diagnostic.detail": "may name places on one machine; the summary says what was found",
    "Diagnostic.hint": "names the path of the spec on one machine",
    "Diagnostic.patch": "a fix of the text, for editors",
    "Diagnostic.is_secret": "how the place is shown",
}
"""TYPE.FIELD of what an approved plan isn't held to, and why."""
_PLAIN = re.compile(r'[^\s,"{}\[\]][^,"{}\[\]\n]*')
"""Text that is written without quotes; other text is quoted."""


def plan_lines(plan: Plan) -> list[str]:
    """Return what an approved plan is compared by: a line per item, in the order of the plan.

    Changes of sites are sorted by text: a cloud returns them in any order.
    """
    lines: list[str] = []
    for field, value in _binding_fields(plan):
        if isinstance(value, msgspec.Struct):
            lines.append(f"{field}: requested")
            lines += _one_by_one(field, value)
        elif isinstance(value, tuple):
            lines += _each(field, value)
        else:
            lines.append(f"{field}: {_text(value)}")
    return lines


def _one_by_one(where: str, group: msgspec.Struct) -> Iterator[str]:
    """Yield a line for each item that a group of changes names."""
    for field, value in _binding_fields(group):
        many = value if isinstance(value, tuple) else (value,)
        yield from (f"{where} {field}: {_text(one)}" for one in many)


def _each(where: str, values: Iterable[Any]) -> Iterator[str]:
    """Yield the lines of a list; a kept resource has none, for nothing is done to it."""
    for value in values:
        if not isinstance(value, msgspec.Struct):
            yield f"{where}: {_text(value)}"
        elif not isinstance(value, ResourceChange) or value.effect != "keep":
            yield from _item(where, value)


def _item(where: str, item: msgspec.Struct) -> Iterator[str]:
    """Yield an item's line, then the lines of the items in it, which name the one they are in."""
    plain = [(field, value) for field, value in _binding_fields(item) if not _has_items(value)]
    yield f"{where}: {_describe(plain)}"
    for field, value in _binding_fields(item):
        if _has_items(value):
            lines = _each(f"{where} {_name(item)} {field}", value)
            yield from sorted(lines) if isinstance(value[0], ResourceChange) else lines


def _has_items(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and isinstance(value[0], msgspec.Struct)


def _name(item: msgspec.Struct) -> str:
    return str(getattr(item, "pool", "") or getattr(item, "site", ""))


def _describe(fields: Iterable[tuple[str, Any]]) -> str:
    """Return "field value, field value"; a resource is named in the line of its change."""
    return ", ".join(
        _describe(_binding_fields(value))
        if isinstance(value, Resource)
        else f"{field} {_text(value)}"
        for field, value in fields
    )


def _binding_fields(value: msgspec.Struct) -> list[tuple[str, Any]]:
    """Return the fields that a plan is compared by; fields with defaults are left out."""
    return [
        (name, field_value)
        for name, default in _fields(type(value))
        if (field_value := getattr(value, name)) != default
    ]


@functools.cache
def _fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, Any], ...]:
    """Return the fields of a type that a plan is held to, each with its default."""
    return tuple(
        (field.name, field.default)
        for field in msgspec.structs.fields(kind)
        if f"{kind.__name__}.{field.name}" not in NOT_HELD
    )


def _text(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    return "unknown" if value is None else msgspec.json.encode(value, order="sorted").decode()
