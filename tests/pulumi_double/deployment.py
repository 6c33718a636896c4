"""Brings a stack from what its checkpoint says to what a program registers, step by step."""

from __future__ import annotations

import copy
import threading
import uuid
from collections.abc import Iterable
from typing import Any

from .backend import SECRET, SIGNATURE, StackFiles, now
from .clouds import Cloud, CloudError, name_of, type_of
from .crypter import Crypter
from .events import EventStream
from .faults import Faults

Json = dict[str, Any]  # the engine's JSON
STACK = "pulumi:pulumi:Stack"
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


class Deployment:
    """The state of one stack while one operation works on it; every step is kept at once."""

    def __init__(
        self,
        files: StackFiles,
        crypter: Crypter,
        cloud: Cloud,
        events: EventStream,
        faults: Faults,
        *,
        planning: bool = False,
        replace: Iterable[str] = (),
    ) -> None:
        """Read the checkpoint; `planning` changes nothing, `replace` are URNs to make again."""
        self._files, self._crypter, self._cloud = files, crypter, cloud
        self._events, self._faults = events, faults
        self.planning = planning
        self._replace = set(replace)
        raw = files.read()
        unsealed: list[Json] = crypter.unseal(raw.get("resources") or [])
        self._old = {r["urn"]: r for r in unsealed if not r.get("delete")}
        self._condemned = [r for r in unsealed if r.get("delete")]
        self._done: dict[str, Json] = {}
        self.pending: list[Json] = raw.get("pending_operations") or []
        self._skipped: set[str] = set()
        self.lock = threading.RLock()
        if self.pending:
            events.emit_diagnostic("warning", _pending_words(self.pending))

    @property
    def prefix(self) -> str:
        """How each URN of the stack begins."""
        return f"urn:pulumi:{self._files.stack}::{self._files.project}::"

    def register(self, wanted: Json) -> Json:
        """Take a registration: `wanted` is the state that it requests, without id and outputs.

        Returns the state to answer with; "failed" and "skipped" in it say that there is none.
        """
        with self.lock:
            urn = wanted["urn"]
            if urn in self._done or urn in self._skipped:
                raise CloudError(f"Duplicate resource URN '{urn}'; try giving it a unique name")
            if self._skipped.intersection(_needs(wanted)):
                self._skipped.add(urn)
                return {**wanted, "id": "", "outputs": {}, "skipped": True}
            try:
                return self._registered(wanted)
            except CloudError as error:
                self._skipped.add(urn)
                self._events.emit_diagnostic("error", str(error), urn)
                self._events.step("resOpFailedEvent", "create", new=wanted)
                return {**wanted, "id": "", "outputs": {}, "failed": True}

    def _registered(self, wanted: Json) -> Json:
        urn = wanted["urn"]
        old = self._old.get(urn) or self._aliased(wanted)
        if not self.planning and (unknown := _unknown_inputs(wanted)):
            raise CloudError(
                f"inputs are unknown while things are made: {unknown}; tests/pulumi_double/"
                "outputs/ lacks an output of a type that they come from"
            )
        message = self._faults.strike("registered", f"{type_of(urn)}::{name_of(urn)}")
        if message:
            raise CloudError(message)
        requested = wanted["inputs"]
        if wanted["custom"] and not wanted["type"].startswith("pulumi:"):
            wanted["inputs"] = self._cloud.checked(urn, requested, old and old["inputs"])
        if old is None:
            return self._create(wanted, "create")
        for path in wanted.pop("ignoreChanges", ()):
            _restore(wanted["inputs"], old["inputs"], path.split("."))
        keys = sorted(_differing(old["inputs"], wanted["inputs"]))
        again = _replaced(old["inputs"], wanted["inputs"], wanted["replaceOnChanges"])
        forced = bool(keys) and self._cloud.forces_replacement(urn, keys)
        if urn in self._replace or again or forced:
            if not wanted.get("deleteBeforeReplace"):  # both are there for a while
                wanted["inputs"] = self._cloud.checked(urn, requested, None)
            return self._made_again(old, wanted, keys)
        return self._same_or_update(old, wanted, keys)

    def _create(self, wanted: Json, op: str) -> Json:
        urn, state = wanted["urn"], _state(wanted)
        tell = {"new": state, "planning": self.planning}
        self._events.step("resourcePreEvent", op, **tell)
        if not wanted["custom"]:
            state["outputs"] = {}
        elif self.planning:
            state["outputs"] = dict(wanted["inputs"])
        elif state["type"].startswith("pulumi:providers:"):
            state |= {"id": str(uuid.uuid4()), "outputs": dict(wanted["inputs"])}
        elif wanted.get("importId"):
            there = self._cloud.read(urn, wanted["importId"], {})
            if there is None:
                raise CloudError(f"resource '{wanted['importId']}' does not exist")
            state |= {"id": wanted["importId"], "outputs": there}
        else:
            self._begin(state, "creating")
            try:
                identifier, computed = self._cloud.create(urn, plain(wanted["inputs"]))
            except CloudError:
                self._end(state)
                raise
            self._faults.strike("made", f"{state['type']}::{name_of(urn)}")
            state |= {"id": identifier, "outputs": _outputs(wanted, computed)}
            self._end(state)
        state["created"] = state["modified"] = now()
        self._keep(state)
        self._events.step("resOutputsEvent", op, **tell)
        return state

    def _same_or_update(self, old: Json, wanted: Json, keys: list[str]) -> Json:
        state = {**_state(wanted), "id": old.get("id", ""), "outputs": old.get("outputs", {})}
        op = "update" if keys else "same"
        tell = {"old": old, "new": state, "keys": keys, "planning": self.planning}
        self._events.step("resourcePreEvent", op, **tell)
        if keys and wanted["custom"] and not self.planning:
            if not state["type"].startswith("pulumi:providers:"):
                self._begin(state, "updating")
                given = (plain(old["inputs"]), plain(wanted["inputs"]))
                computed = self._cloud.update(state["urn"], state["id"], *given)
                self._end(state)
            else:
                computed = {}
            kept = {k: v for k, v in old.get("outputs", {}).items() if k not in old["inputs"]}
            state |= {"outputs": _outputs(wanted, kept | computed), "modified": now()}
        self._old.pop(old["urn"], None)
        self._keep(state)
        self._events.step("resOutputsEvent", op, **tell)
        return state

    def _made_again(self, old: Json, wanted: Json, keys: list[str]) -> Json:
        """Replace: the new one first, unless the program says otherwise; the old one goes last."""
        if old.get("protect"):
            raise CloudError(
                f'unable to replace resource "{old["urn"]}"\nas part of a replacement: it is '
                "currently marked for protection"
            )
        whole = {"old": old, "new": _state(wanted), "keys": keys, "planning": self.planning}
        self._events.step("resourcePreEvent", "replace", **whole)
        condemned = {**old, "delete": True}
        self._old.pop(old["urn"], None)
        if wanted.get("deleteBeforeReplace"):
            self._delete(condemned, "delete-replaced")
        else:
            self._condemned.append(condemned)
        made = self._create(wanted, "create-replacement")
        self._events.step("resOutputsEvent", "replace", **whole)
        return made

    def find(self, urn: str) -> Json | None:
        """Return the state of what this run has registered already."""
        return self._done.get(urn)

    def outputs_of(self, urn: str, outputs: Json) -> None:
        """Keep what a component or the stack registers as outputs."""
        with self.lock:
            if not self.planning and _mentions_unknown(outputs) and not self._skipped:
                self._events.emit_diagnostic(
                    "error", f"an output of {urn} is unknown after the update", urn
                )
                return
            if urn in self._done:
                self._done[urn]["outputs"] = outputs
                self._write()

    def remove_rest(self) -> None:
        """Remove what the program no longer registers, and what was replaced."""
        for state in reversed([*self._old.values()]):
            self._remove(state)
        for state in list(self._condemned):
            self._delete(state, "delete-replaced")

    def destroy(self, *, exclude_protected: bool) -> int:
        """Remove everything, dependents first; return how many protected things stay."""
        kept: set[str] = set()
        if exclude_protected:
            open_ = [r["urn"] for r in self._old.values() if r.get("protect")]
            while open_:
                urn = open_.pop()
                if urn in self._old and urn not in kept:
                    kept.add(urn)
                    open_ += _needs(self._old[urn])
        for state in list(self._condemned):
            self._delete(state, "delete-replaced")
        for state in reversed([*self._old.values()]):
            if state["urn"] not in kept and (state["type"] != STACK or not kept):
                self._remove(state)
        return sum(bool(r.get("protect")) for r in self._old.values())

    def refresh(self, *, clear_pending: bool) -> None:
        """Read everything back."""
        if clear_pending and not self.planning:
            self.pending = []
            self._write()
        for state in [*self._old.values()]:
            tell: Json = {"old": state, "planning": self.planning}
            self._events.step("resourcePreEvent", "refresh", new=state, **tell)
            if not _is_in_cloud(state):  # as it is said to be
                self._events.step("resOutputsEvent", "refresh", new=state, **tell)
                continue
            there = self._cloud.read(state["urn"], state["id"], state["outputs"])
            if there is None:
                self._events.step("resOutputsEvent", "delete", **tell)
                if not self.planning:
                    del self._old[state["urn"]]
                    self._write()
                continue
            if not state["outputs"]:  # imported by an id: its state has its own
                state["id"] = there.get("id", state["id"])
            keys = sorted(_differing(plain(state["outputs"]), there))
            op = "update" if keys else "refresh"
            self._events.step("resOutputsEvent", op, new=state, keys=keys or None, **tell)
            if keys and not self.planning:
                changed = {k: there[k] for k in keys if k in there}
                state["outputs"] = {**state["outputs"], **changed}
                self._write()

    def adopt(self, state: Json) -> None:
        """Take in what exists (`pulumi import`)."""
        there = self._cloud.read(state["urn"], state["id"], {})
        if there is None:
            raise CloudError(f"resource '{state['id']}' does not exist")
        self._old[state["urn"]] = {**state, "inputs": there, "outputs": there}
        self._write()

    def _remove(self, state: Json) -> None:
        if state.get("protect"):
            self._events.emit_diagnostic("error", _protected_words(state["urn"]), state["urn"])
            return
        needed = [r["urn"] for r in self._old.values() if state["urn"] in _needs(r)]
        if needed:  # a dependent could not be removed
            return
        self._delete(state, "delete")

    def _delete(self, state: Json, op: str) -> None:
        tell: Json = {"old": state, "planning": self.planning}
        self._events.step("resourcePreEvent", op, **tell)
        if not self.planning:
            if _is_in_cloud(state) and not state.get("retainOnDelete"):
                self._begin(state, "deleting")
                try:
                    self._cloud.delete(state["urn"], state["id"], plain(state["outputs"]))
                except CloudError as error:
                    self._end(state)
                    self._events.emit_diagnostic("error", str(error), state["urn"])
                    self._events.step("resOpFailedEvent", op, **tell)
                    return
                self._faults.strike("deleted", f"{state['type']}::{name_of(state['urn'])}")
                self._end(state)
            if state.get("delete"):
                self._condemned = [r for r in self._condemned if r is not state]
            else:
                self._old.pop(state["urn"], None)
            self._write()
        self._events.step("resOutputsEvent", op, **tell)

    def _aliased(self, wanted: Json) -> Json | None:
        for alias in wanted.get("aliases", ()):
            if alias in self._old:
                return self._old[alias]
        return None

    def _begin(self, state: Json, kind: str) -> None:
        self.pending.append({"resource": state, "type": kind})
        self._write()

    def _end(self, state: Json) -> None:
        self.pending = [p for p in self.pending if p["resource"]["urn"] != state["urn"]]
        self._write()

    def _keep(self, state: Json) -> None:
        self._done[state["urn"]] = state
        self._write()

    def _write(self) -> None:
        if self.planning:
            return
        states = [*self._done.values(), *self._old.values(), *self._condemned]
        self._files.write(
            {
                "manifest": {"time": now(), "magic": "", "version": "double"},
                "secrets_providers": {"type": "passphrase", "state": {"salt": self._crypter.state}},
                "resources": self._crypter.seal(copy.deepcopy(states)),
                "pending_operations": self._crypter.seal(self.pending),
                "metadata": {},
            }
        )


def plain(value: Any) -> Any:
    """Return a value without the wrapping of its secrets."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get(SIGNATURE) == SECRET:
        return plain(value["value"])
    return {key: plain(item) for key, item in value.items()}


def _state(wanted: Json) -> Json:
    """Return the checkpoint's entry: what is requested, without what only the engine needs."""
    passing = {"ignoreChanges", "replaceOnChanges", "deleteBeforeReplace", "importId", "computed"}
    return {"id": "", "outputs": {}, **{k: v for k, v in wanted.items() if k not in passing}}


def _outputs(wanted: Json, computed: Json) -> Json:
    outputs = {**wanted["inputs"], **computed}
    for key in wanted.get("additionalSecretOutputs", ()):
        value = outputs.get(key)
        if value is not None and not (isinstance(value, dict) and value.get(SIGNATURE) == SECRET):
            outputs[key] = {SIGNATURE: SECRET, "value": value}
    return outputs


def _needs(state: Json) -> list[str]:
    """Return the URNs of all that must be there before, and stay as long."""
    found = [*state.get("dependencies", ())]
    for urns in state.get("propertyDependencies", {}).values():
        found += urns
    found += [urn for urn in (state.get("parent"), state.get("deletedWith")) if urn]
    if state.get("provider"):
        found.append(state["provider"].rpartition("::")[0])
    return found


def _is_in_cloud(state: Json) -> bool:
    return bool(state["custom"]) and not state["type"].startswith("pulumi:")


def _differing(old: Json, new: Json) -> set[str]:
    return {k for k in old.keys() | new.keys() if plain(old.get(k)) != plain(new.get(k))}


def _replaced(old: Json, new: Json, rules: Iterable[str]) -> bool:
    """Return whether what differs is at one of these paths: "*", "prefix", "tags.name"."""
    for rule in rules:
        if rule == "*" and _differing(old, new):
            return True
        before, after = plain(old), plain(new)
        for part in rule.split("."):
            if not (isinstance(before, dict) and isinstance(after, dict)):
                break
            key = part.partition("[")[0]
            before, after = before.get(key), after.get(key)
        if before != after:
            return True
    return False


def _restore(new: Json, old: Json, path: list[str]) -> None:
    """Put the old value at a path back into the new inputs."""
    here, *rest = path
    if rest:
        if isinstance(new.get(here), dict) and isinstance(old.get(here), dict):
            _restore(new[here], old[here], rest)
    elif here in old:
        new[here] = old[here]
    else:
        new.pop(here, None)


def _mentions_unknown(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_mentions_unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(_mentions_unknown(item) for item in value)
    return bool(value == UNKNOWN)


def _unknown_inputs(wanted: Json) -> str:
    """Return "KEY from TYPES, ..." of the inputs that have no value."""
    return ", ".join(
        f"{key} from {sorted(map(type_of, wanted['propertyDependencies'].get(key, ())))}"
        for key, value in wanted["inputs"].items()
        if _mentions_unknown(value)
    )


def _pending_words(pending: list[Json]) -> str:
    lines = [f"  * {p['resource']['urn']}, interrupted while {p['type']}" for p in pending]
    head = (
        "Attempting to deploy or update resources with pending operations from previous deployment"
    )
    return "\n".join([f"{head}.", *lines])


def _protected_words(urn: str) -> str:
    return (
        f'resource "{urn}" cannot be deleted\nbecause it is protected. To unprotect the resource, '
        "either remove the `protect` flag from the resource in your Pulumi program and run "
        "`pulumi up`, or use the command `pulumi state unprotect`"
    )
