"""The clouds behind the double: one that is invented here, and what any of them must answer."""

from __future__ import annotations

import hashlib
import json
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]  # a provider's JSON
_SUBSCRIPTION = "/subscriptions/00000000-0000-0000-0000-000000000001"
OUTPUTS = Path(__file__).with_name("outputs")
"""What it answers, a file a cloud."""


class CloudError(Exception):
    """The cloud refuses; its words."""


class Cloud(ABC):
    """Makes, changes and removes things, as a provider's plugin would."""

    @abstractmethod
    def create(self, urn: str, inputs: Json) -> tuple[str, Json]:
        """Make a thing; return its id and what is computed. Raises CloudError."""

    def update(self, urn: str, identifier: str, old: Json, new: Json) -> Json:
        """Change it; return what is computed. Raises CloudError: by default nothing changes."""
        del identifier
        changed = {k for k in old.keys() | new.keys() if old.get(k) != new.get(k)}
        raise CloudError(f"this double can't change {sorted(changed)} of {type_of(urn)}")

    @abstractmethod
    def delete(self, urn: str, identifier: str, state: Json) -> None:
        """Remove it; no error if it is gone. Raises CloudError."""

    @abstractmethod
    def read(self, urn: str, identifier: str, state: Json) -> Json | None:
        """Return its outputs as they are now, None where it is gone. Raises CloudError."""

    @abstractmethod
    def invoke(self, token: str, arguments: Json) -> Json:
        """Answer a question. Raises CloudError."""

    def checked(self, urn: str, inputs: Json, old: Json | None) -> Json:
        """Return the inputs with what the provider fills in by itself; by default that is nothing.

        `old` are those of the thing that is there already, None where one is made.
        """
        del urn, old
        return inputs

    def forces_replacement(self, urn: str, keys: list[str]) -> bool:
        """Say whether a change of these inputs means another thing; by default none does."""
        del urn, keys
        return False


def type_of(urn: str) -> str:
    """Return the type token of a URN."""
    return urn.split("::")[2].rpartition("$")[2]


def name_of(urn: str) -> str:
    """Return the name of a URN."""
    return urn.split("::", 3)[3]


def unique_name(urn: str) -> str:
    """Return the name that the provider gives what has none: its own, and something random."""
    random = hashlib.sha256(f"{urn}{time.time_ns()}".encode()).hexdigest()[:7]
    return f"{name_of(urn)}-{random}"


class InventedCloud(Cloud):
    """Everything works; ids and addresses have the form that the real clouds give them.

    What exists is kept in one file, so that a test can see what a killed run left. Names that are
    unique in the real cloud are unique here.
    """

    def __init__(self, file: Path) -> None:
        """Keep things in this file."""
        self._file = file
        self._types: dict[str, Json] = {}
        self._answers: dict[str, Json] = {}
        for table in OUTPUTS.glob("*.yaml"):
            read = yaml.safe_load(table.read_text(encoding="utf-8"))
            self._types |= read["types"]
            self._answers |= read.get("answers", {})

    def create(self, urn: str, inputs: Json) -> tuple[str, Json]:
        """Give the thing an id and outputs by its type."""
        things = self._things()
        type_ = type_of(urn)
        if type_ not in self._types:
            raise CloudError(f"the invented cloud of this double has no type {type_}")
        known = self._types[type_]
        words = _words(urn, inputs, things["serial"])
        words["group"] = f"{_SUBSCRIPTION}/resourceGroups/{inputs.get('resourceGroupName')}"
        identifier = words["id"] = _fill(known["id"], words)
        is_azure = type_.startswith("azure-native:")
        unique = _fill(known.get("unique", "{id}" if is_azure else ""), words)
        if unique and any(
            t["unique"] == unique and t["type"] == type_ for t in things["by_id"].values()
        ):
            raise CloudError(f"{type_} {unique} already exists")
        outputs = {key: _fill(text, words) for key, text in known.get("outputs", {}).items()}
        if is_azure:  # every resource there has its name
            outputs.setdefault("name", identifier.rpartition("/")[2])
        if isinstance(inputs.get("identity"), dict):
            outputs["identity"] = _identity(inputs["identity"], words["uuid"])
        things["serial"] += 1
        things["by_id"][f"{type_} {identifier}"] = {
            "type": type_, "urn": urn, "unique": unique, "outputs": outputs, "inputs": inputs,
        }  # fmt: skip
        self._write(things)
        return identifier, outputs

    def update(self, urn: str, identifier: str, old: Json, new: Json) -> Json:
        """Keep the new inputs."""
        del old
        things = self._things()
        thing = things["by_id"].get(f"{type_of(urn)} {identifier}")
        if thing is None:
            raise CloudError(f"{type_of(urn)} {identifier} is not there")
        thing["inputs"] = new
        self._write(things)
        outputs: Json = thing["outputs"]
        return outputs

    def delete(self, urn: str, identifier: str, state: Json) -> None:
        """Remove it."""
        del state
        things = self._things()
        things["by_id"].pop(f"{type_of(urn)} {identifier}", None)
        self._write(things)

    def read(self, urn: str, identifier: str, state: Json) -> Json | None:
        """Return it as it was made, None where it is gone."""
        del state
        thing = self._things()["by_id"].get(f"{type_of(urn)} {identifier}")
        return None if thing is None else {**thing["inputs"], **thing["outputs"]}

    def invoke(self, token: str, arguments: Json) -> Json:
        """Answer from the table."""
        if token not in self._answers:
            raise CloudError(f"the invented cloud of this double has no answer to {token}")
        filled = _fill(self._answers[token], {f"arg_{k}": v for k, v in arguments.items()})
        return {**arguments, **filled}

    def _things(self) -> Json:
        if not self._file.exists():
            return {"serial": 1, "by_id": {}}
        things: Json = json.loads(self._file.read_text(encoding="utf-8"))
        return things

    def _write(self, things: Json) -> None:
        fresh = self._file.with_suffix(".new")
        fresh.write_text(json.dumps(things, indent=1), encoding="utf-8")
        fresh.replace(self._file)


def _identity(requested: Json, uuid: str) -> Json:
    """Return the identities of a resource as Azure answers: it takes a list, and gives a map."""
    given = requested.get("userAssignedIdentities", ())
    ids = {identity: {"clientId": uuid, "principalId": uuid} for identity in given}
    return {**requested, "principalId": uuid, "tenantId": uuid, "userAssignedIdentities": ids}


def _words(urn: str, inputs: Json, serial: int) -> Json:
    """Return what templates of ids and outputs may name."""
    digest = hashlib.sha256(f"{urn} {serial}".encode()).hexdigest()
    return _Words({
        "resource": name_of(urn),
        "autoname": f"{name_of(urn)}{digest[:8]}",
        "called": inputs.get("name") or f"{name_of(urn)}-{digest[:7]}",
        "hex8": digest[:8],
        "hex17": digest[:17],
        "hex40": digest[:40],
        "uuid": f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}",
        "digits": str(int(digest[:12], 16)),
        "host": f"{serial // 200}.{serial % 200 + 10}",
        **{f"in_{key}": value for key, value in inputs.items() if isinstance(value, str)},
        **{f"tail_{k}": v.rpartition("/")[2] for k, v in inputs.items() if isinstance(v, str)},
    })  # fmt: skip


class _Words(Json):
    """What templates may name; names that Azure's programs leave out are made up, as there."""

    def __missing__(self, key: str) -> str:
        if key.startswith("in_") and key.endswith("Name"):
            return str(self["autoname"])
        raise KeyError(key)


def _fill(template: Any, words: Json) -> Any:
    """Return a template of the table with words in it.

    Raises:
        CloudError: the table names an input that the program left out.
    """
    if isinstance(template, dict):
        return {key: _fill(value, words) for key, value in template.items()}
    if isinstance(template, list):
        return [_fill(value, words) for value in template]
    if not isinstance(template, str):
        return template
    try:
        return template.format_map(words)
    except KeyError as error:
        raise CloudError(f'the double\'s template "{template}" needs the input {error}') from None
