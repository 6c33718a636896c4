"""Hooks of charts: which of them `up` runs, in which order, and which nobody will (pure).

https://helm.sh/docs/topics/charts_hooks (read 2026-11). Jobs are run around an installation and an
upgrade, and removed when they ended well. What else a chart has as a hook (accounts, roles and
settings of such jobs) is applied with the rest and stays. `up` never rolls back, and removes what a
chart made by itself: hooks of those don't run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

from ....inventory.compile.kubernetes_objects.objects import Object

Event: TypeAlias = Literal["install", "upgrade"]
When: TypeAlias = Literal["pre", "post"]

_KIND = "helm.sh/hook"
_WEIGHT = "helm.sh/hook-weight"
_TESTS = frozenset({"test", "test-success", "test-failure"})
_BEFORE = frozenset({"pre-install", "pre-upgrade"})
_AFTER = frozenset({"post-install", "post-upgrade"})


class Hook(msgspec.Struct, frozen=True, kw_only=True):
    """An object that a chart wants around what is done to it."""

    made: Object
    events: frozenset[str]
    """"pre-install", "post-upgrade"."""
    weight: int

    @property
    def runs(self) -> bool:
        """Whether it runs once and ends."""
        return bool(self.made["kind"] == "Job")

    @property
    def is_known(self) -> bool:
        """Whether all of its events come, and it is something that `up` knows how to run."""
        return self.made["kind"] != "Pod" and not self.events - _BEFORE - _AFTER - _TESTS

    @property
    def words(self) -> str:
        """Name it and what it is for: "Job/clean (pre-delete)"."""
        events = ", ".join(sorted(self.events))
        return f"{self.made['kind']}/{self.made['metadata']['name']} ({events})"


class Parted(msgspec.Struct, frozen=True, kw_only=True):
    """A chart's objects without its hooks, and those in their order: weight, kind, name."""

    objects: tuple[Object, ...]
    hooks: tuple[Hook, ...]

    def jobs(self, when: When, event: Event) -> list[Object]:
        """Return what runs before or after an event."""
        return [hook.made for hook in self.hooks if hook.runs and f"{when}-{event}" in hook.events]

    def beside(self, when: When) -> list[Object]:
        """Return what is applied before the chart's own objects, or after them."""
        found = [hook for hook in self.hooks if hook.made["kind"] not in {"Job", "Pod"}]
        if when == "pre":
            return [hook.made for hook in found if hook.events & _BEFORE]
        return [h.made for h in found if h.events & _AFTER and not h.events & _BEFORE]

    @property
    def never_run(self) -> tuple[str, ...]:
        """Hooks of which at least one event never comes, and single pods, in words."""
        return tuple(hook.words for hook in self.hooks if not hook.is_known)


def parted(objects: Iterable[Object]) -> Parted:
    """Part hooks from the rest. CRDs that old charts have as hooks are none; tests are left out."""
    plain: list[Object] = []
    hooks: list[Hook] = []
    for made in objects:
        notes = made["metadata"].get("annotations") or {}
        events = frozenset(w.strip() for w in str(notes.get(_KIND, "")).split(",") if w.strip())
        if not events or "crd-install" in events:
            plain.append(made)
        elif events - _TESTS:
            hooks.append(Hook(made=made, events=events, weight=_weight(notes.get(_WEIGHT, "0"))))
    hooks.sort(key=lambda h: (h.weight, h.made["kind"], h.made["metadata"]["name"]))
    return Parted(objects=tuple(plain), hooks=tuple(hooks))


def _weight(text: object) -> int:
    try:
        return int(str(text))
    except ValueError:
        return 0
