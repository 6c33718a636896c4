"""Folds the engine's events into our progress, the changes it made, and what went wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from ....schemas.diagnostics import Diagnostic, Severity
from ....schemas.structure.decoding import decode_yaml
from ...provider import Effect, Resource, ResourceChange, SiteEvent
from ..data import data_files

if TYPE_CHECKING:
    from pulumi.automation import EngineEvent, StepEventMetadata

_EFFECTS: dict[str, Effect] = {
    "same": "keep",
    "read": "keep",
    "refresh": "keep",
    "import": "keep",
    "create": "create",
    "update": "update",
    "delete": "delete",
    "replace": "replace",
    "create-replacement": "replace",
    "delete-replaced": "replace",
    "import-replacement": "replace",
}
"""Of the engine's operations (pulumi/sdk/go/common/apitype/events.go); others are not steps."""
_DONE = {
    "keep": "is as it should be",
    "create": "is made",
    "update": "is updated",
    "replace": "is replaced",
    "delete": "is gone",
}
_STACK = "pulumi:pulumi:Stack"


class EventFold:
    """Takes the events of one operation, in order."""

    def __init__(self, site: str, emit: Callable[[SiteEvent], None], *, total: int = 0) -> None:
        """Report for `site`; `total` is how many resources there are to do, 0 where not known."""
        self._site = site
        self._emit = emit
        self._total = total
        self._changes: dict[str, ResourceChange] = {}
        self._done: set[str] = set()
        self._failures: list[tuple[str, str]] = []
        self.warnings: list[str] = []

    def take(self, event: EngineEvent) -> None:
        """Take the next event."""
        if event.resource_pre_event is not None:
            self._plan(event.resource_pre_event.metadata)
        elif event.res_outputs_event is not None:
            self._finish(event.res_outputs_event.metadata)
        elif event.res_op_failed_event is not None:
            self._plan(event.res_op_failed_event.metadata)
        elif event.diagnostic_event is not None:
            diagnostic_event = event.diagnostic_event
            if diagnostic_event.severity == "error":
                self._failures.append((diagnostic_event.urn or "", diagnostic_event.message))
            elif diagnostic_event.severity == "warning":
                self.warnings.append(diagnostic_event.message.strip())

    def changes(self) -> tuple[ResourceChange, ...]:
        """Return one change per resource, in the order in which they began."""
        return tuple(self._changes.values())

    def findings(self, rest: str = "") -> tuple[Diagnostic, ...]:
        """Return the errors, each resource with its message; `rest` where none has any.

        The engine closes with the bare line "update failed", which is left out if there is a
        reason.
        """
        messages = [(urn, text) for urn, text in self._failures if not _is_closing(urn, text)]
        if not messages:
            return (translate(rest or "\n".join(text for _, text in self._failures)),)
        return tuple(translate(text, resource=_label(urn)) for urn, text in dict.fromkeys(messages))

    def lacking(self) -> dict[str, Diagnostic]:
        """Return the resources that the cloud had no capacity for, by name."""
        values = {
            _name(u): translate(t, resource=_label(u)) for u, t in self._failures if _label(u)
        }
        return {name: found for name, found in values.items() if found.code == NO_CAPACITY}

    def _plan(self, step: StepEventMetadata) -> None:
        effect = _EFFECTS.get(str(step.op.value))
        if effect is None or not _is_made(step):
            return
        known = self._changes.get(step.urn)
        if known is not None and known.effect == "replace":
            return  # the steps of a replacement come one by one
        resource = Resource(kind=_kind(step.urn), name=_name(step.urn), parent=_parent(step))
        self._changes[step.urn] = ResourceChange(
            effect=effect, resource=resource, reason=_reason(step)
        )

    def _finish(self, step: StepEventMetadata) -> None:
        self._plan(step)
        change = self._changes.get(step.urn)
        if change is None or step.urn in self._done or str(step.op.value) == "delete-replaced":
            return
        self._done.add(step.urn)
        what = f"{change.resource.kind} {change.resource.name} {_DONE[change.effect]}"
        done = len(self._done)
        total = max(self._total, done, len(self._changes))
        self._emit(SiteEvent(site=self._site, done=done, total=total, what=what))


def _is_made(step: StepEventMetadata) -> bool:
    """Whether a provider makes it: components and the stack are only frames."""
    state = step.new or step.old
    return step.type != _STACK and (state is None or state.custom is not False)


def _reason(step: StepEventMetadata) -> str:
    """Return the inputs that differ, from the engine's event."""
    if step.detailed_diff:
        return ", ".join(sorted(step.detailed_diff))
    return ", ".join(step.keys or step.diffs or ())


def _parent(step: StepEventMetadata) -> str | None:
    state = step.new or step.old
    urn = state.parent if state is not None else ""
    return _name(urn) if urn and f"::{_STACK}::" not in urn else None


def _kind(urn: str) -> str:
    return urn.split("::")[2].rpartition(":")[2]


def _name(urn: str) -> str:
    return urn.split("::", 3)[3]


def _label(urn: str) -> str:
    return f"{_kind(urn)} {_name(urn)}" if urn.count("::") >= 3 and _STACK not in urn else ""  # noqa: PLR2004  # parts of a URN


def _is_closing(urn: str, text: str) -> bool:
    return (not urn or _STACK in urn) and text.strip().removeprefix("error:").strip() in {
        "update failed",
        "preview failed",
        "refresh failed",
        "destroy failed",
    }


Cause: TypeAlias = Literal["locked", "expired", "capacity", "quota", "permission", "other"]
NO_CAPACITY = "GC960"
"""Code on which a fallback list steps to its next option."""


class _CauseText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    code: str
    summary: str


class _Pattern(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cause: Cause
    pattern: str
    next: str


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    causes: dict[Cause, _CauseText]
    patterns: list[_Pattern]


def translate(message: str, *, resource: str = "") -> Diagnostic:
    """Return a diagnostic for a message of the engine or a cloud.

    `resource` ("Instance demo-east-gpu-0") leads the summary; the whole message is the detail,
    except for a page of HTML, of which the title is enough.
    """
    message = _PAGE.sub(_title, message)
    lead = f"{resource}: " if resource else ""
    for pattern in _table().patterns:
        found = _compiled(pattern.pattern).search(message)
        if found:
            text = _table().causes[pattern.cause]
            summary = f"{lead}{text.summary}{_about(found.groupdict())}"
            return _diagnostic(text.code, summary, message, hint=pattern.next)
    text = _table().causes["other"]
    summary = f"{lead}{text.summary}: {first_line(message)}"
    hint = (
        "the message is the cloud's own; what was made is kept, and `gcluster up` goes on from it"
    )
    return _diagnostic(text.code, summary, message, hint=hint)


def cause(diagnostic: Diagnostic) -> Cause | None:
    """Return the cause that a diagnostic of `translate` has, None for others."""
    for name, text in _table().causes.items():
        if text.code == diagnostic.code:
            return name
    return None


_PAGE = re.compile(
    r"b?['\"]?<(?:!doctype\s+html|html)\b.*?(?:</html>['\"]?|\Z)", re.DOTALL | re.IGNORECASE
)
"""A page that a proxy or a gateway gave in place of an answer."""
_TITLE = re.compile(r"(?is)<(title|h1)\b[^>]*>(.+?)</\1>")
_MARKUP = re.compile(r"(?is)<(script|style)\b.*?</\1>|<[^>]*>|\\[nrt]|\s")
_LONGEST_TITLE = 80


def _title(page: re.Match[str]) -> str:
    """Return a short form of a page: its title, else the begin of its text."""
    titled = _TITLE.search(page[0])
    said = " ".join(_MARKUP.sub(" ", titled[2] if titled else page[0].strip("b'\"")).split())
    return f'a page of HTML, "{said[:_LONGEST_TITLE]}"' if said else "a page of HTML"


def first_line(message: str) -> str:
    """Return the first line with content, without the engine's decoration."""
    for line in message.splitlines():
        text = line.strip().removeprefix("error:").lstrip("* ").strip()
        if text and not re.fullmatch(r"\d+ errors? occurred:|code: \d+|std(out|err):", text):
            return text
    return "it gave no reason"


def _about(groups: dict[str, str | None]) -> str:
    what, where = groups.get("what"), groups.get("where")
    about = " in ".join(part.strip() for part in (what, where) if part)
    return f" ({about})" if about else ""


def _diagnostic(code: str, summary: str, message: str, *, hint: str) -> Diagnostic:
    return Diagnostic(
        code=code, severity=Severity.ERROR, summary=summary, detail=message.strip(), hint=hint
    )


@cache
def _table() -> _Table:
    """Return the error patterns of all clouds, those of this cloud's folder first."""
    shared = decode_yaml(Path(__file__).with_name("errors.yaml").read_bytes(), _Table)
    own = [
        pattern
        for file in data_files("errors")
        for pattern in decode_yaml(file.read_bytes(), list[_Pattern])
    ]
    return msgspec.structs.replace(shared, patterns=[*own, *shared.patterns])


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.DOTALL)
