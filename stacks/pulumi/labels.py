"""Tags and labels: who a resource belongs to, in the form that each cloud takes.

`sweep` finds what a cluster left behind by them, so everything that takes tags must carry them.
"""

from __future__ import annotations

import hashlib
import re

import msgspec

LONGEST_LABEL = 63
"""Characters of a GCP label, key or value
(cloud.google.com/compute/docs/labeling-resources#restrictions, November 2026)."""
LONGEST_TAG = 256
"""Characters of a tag's value on AWS and Azure (EC2 User Guide, "Tag restrictions"; Azure
Resource Manager, "Limitations" of tags, November 2026)."""
CLUSTER = "gcluster-cluster"
SITE = "gcluster-site"
SPEC = "gcluster-spec"
OWNER = "gcluster-owner"
POOL = "gcluster-pool"
HOST = "gcluster-host"
"""Name in the cluster: gpu001."""
_HASH = 8


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
    digest = hashlib.sha256((of or value).encode()).hexdigest()[:_HASH]
    return f"{value[: longest - _HASH - 1]}-{digest}"
