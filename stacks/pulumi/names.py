"""Names of resources: the same for the same spec, short enough for each cloud."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from typing import Any

import msgspec

from ...schemas.derived.hostlist import host_word
from ...schemas.spec import ClusterSpec
from .data import data_file, read_data

NO_KEY = "ssh-ed25519 KEY-OF-THE-CLUSTER"
"""Stands in recorded graphs for the public key, which is made by the first `up`."""
SUFFIX = 8
"""Characters that Pulumi adds to make a physical name from a logical one ("-" and 7 hex digits)."""
_HASH = 6


def short_hash(text: str) -> str:
    """Return six hex digits that differ where the text does."""
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH]


class Limit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a cloud takes as a name."""

    longest: int
    compact: bool = False
    """Letters and digits only."""


class Names(msgspec.Struct, frozen=True, kw_only=True):
    """Makes `<cluster>-<site>-<what>[-n]`; what is too long ends in a hash of the whole instead.

    A name depends on its own parts alone, so it stays when another pool is added.
    """

    cluster: str
    site: str
    cloud: str
    """Its folder of stacks: data/names.yaml says what it takes; without one there is no limit."""

    @property
    def description(self) -> str:
        """What things say that take no labels: by it they are found."""
        return f"gcluster {self.cluster}/{self.site}"

    def __call__(self, what: str, number: int | None = None, *, kind: str = "default") -> str:
        """Return the name of a thing; `kind` is the cloud's kind with limits of its own."""
        parts = [self.cluster, self.site, host_word(what)]
        if number is not None:
            parts.append(str(number))
        limits = _limits(self.cloud)
        name = "-".join(parts)
        if limits is None:
            return name
        limit = limits.get(kind, limits["default"])
        return shortened(name, limit)


def shortened(name: str, limit: Limit) -> str:
    """Return a name that leaves room for Pulumi's suffix; a hash keeps short ones apart."""
    digest = short_hash(name)
    room = limit.longest - SUFFIX
    if limit.compact:
        kept = "".join(char for char in name if char.isalnum()).lower()
        return kept[: room - _HASH] + digest  # without hyphens a-bc and ab-c would be one name
    if len(name) <= room:
        return name
    return f"{name[: room - _HASH - 1].rstrip('-')}-{digest}"


@cache
def _limits(cloud: str) -> dict[str, Limit] | None:
    """Return what a cloud takes by kind of resource; None where nobody says."""
    known = data_file(cloud, "names").exists()
    return read_data(cloud, "names", dict[str, Limit]) if known else None


LONGEST_LABEL = 63
"""Characters of a GCP label, key or value
(cloud.google.com/compute/docs/labeling-resources#restrictions, November 2026)."""
LONGEST_TAG = 256
"""Characters of a tag's value on AWS and Azure (EC2 User Guide, "Tag restrictions"; Azure
Resource Manager, "Limitations" of tags, November 2026)."""
FILE_SYSTEMS = "file-systems"
"""The output of a site's stack with storage -> what is mounted of the file systems it made."""
FABRIC_NETWORKS = "fabric-networks"
"""The output of a site's stack with pool -> NETWORK/SUBNET of its nodes' interfaces."""
CLUSTER = "gcluster-cluster"
SITE = "gcluster-site"
SPEC = "gcluster-spec"
OWNER = "gcluster-owner"
POOL = "gcluster-pool"
OFFER = "gcluster-offer"
"""Key of the offer that a node was bought by; on templates of machines the one they are for."""
TOKEN = "gcluster-token"  # noqa: S105  # a tag's key
"""The burst that an elastic node belongs to: the ledger's intent. Nodes of the stack have none."""
HOST = "gcluster-host"
"""Name in the cluster: gpu001."""
_HASH_LENGTH = 8


class Labels(msgspec.Struct, frozen=True, kw_only=True):
    """What all resources of one site are marked with. Keys are the same on all clouds."""

    cluster: str
    site: str
    spec_hash: str
    """Changes with every change of the spec; empty: not written."""
    owner: str = ""
    extra: dict[str, str] = {}
    """The spec's own tags; those of gcluster win."""

    def tags(self) -> dict[str, str]:
        """Return them for AWS and Azure: case and characters are kept."""
        own = {CLUSTER: self.cluster, SITE: self.site, SPEC: self.spec_hash, OWNER: self.owner}
        merged = self.extra | {key: value for key, value in own.items() if value}
        return {key: _cut(value, LONGEST_TAG) for key, value in sorted(merged.items())}

    def gcp(self) -> dict[str, str]:
        """Return them for GCP: lower case, letters, digits, hyphens and underscores, 63 at most."""
        return {label_key(key): label_value(value) for key, value in self.tags().items()}

    def found_by(self) -> dict[str, str]:
        """Return the two by which `sweep` finds a site's resources."""
        return {CLUSTER: self.cluster, SITE: self.site}


def label_key(text: str) -> str:
    """Return a key that GCP takes: it starts with a letter."""
    key = label_value(text)
    return key if key[:1].isalpha() else _cut(f"x{key}", LONGEST_LABEL)


def label_value(text: str) -> str:
    """Return a value that GCP takes."""
    value = re.sub(r"[^a-z0-9_-]", "_", text.lower())
    return _cut(value, LONGEST_LABEL, of=text) if value != text else _cut(value, LONGEST_LABEL)


def _cut(value: str, longest: int, of: str | None = None) -> str:
    """Return `value`, or its start and a hash of the whole where it is too long."""
    if len(value) <= longest:
        return value
    digest = hashlib.sha256((of or value).encode()).hexdigest()[:_HASH_LENGTH]
    return f"{value[: longest - _HASH_LENGTH - 1]}-{digest}"


_DIGITS = 12


def spec_hash(spec: ClusterSpec) -> str:
    """Return a hash that changes with every change of the spec's meaning.

    Fields that have their default value are left out, whole nouns among them: a version of gcluster
    that knows more nouns gives the same spec the same hash, and retags nothing.
    """
    text = msgspec.json.encode(_differing(spec), order="sorted")
    return hashlib.sha256(text).hexdigest()[:_DIGITS]


def _differing(value: object) -> Any:  # any JSON
    """Return plain data of what differs from the defaults."""
    if isinstance(value, msgspec.Struct):
        tag = value.__struct_config__.tag
        values = {} if tag is None else {value.__struct_config__.tag_field: tag}
        for field in msgspec.structs.fields(value):
            held = getattr(value, field.name)
            if held != _default(field):
                values[field.encode_name] = _differing(held)
        return values
    if isinstance(value, dict):
        return {str(key): _differing(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_differing(part) for part in value]
    return msgspec.to_builtins(value, enc_hook=str)


def _default(field: msgspec.structs.FieldInfo) -> object:
    """Return a field's default; `msgspec.NODEFAULT` where it has none."""
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default
