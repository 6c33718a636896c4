"""What was applied of an add-on, whole, in a Secret beside its record: drift is put back by it.

Nothing is rendered for that. A chart that makes a certificate or a password while it is rendered
would make another one each time, and objects that belong to the old one would stand beside the new.
It is a Secret because such charts' secrets are in it.
"""

from __future__ import annotations

import base64
import binascii
import gzip
from collections.abc import Iterable
from typing import Any

import msgspec

from ....inventory.compile.kubernetes_objects.objects import (
    CLUSTER_LABEL,
    SYSTEM_NAMESPACE,
    Object,
    new,
)
from ....schemas.decoding import decode_json
from ..kubectl import Kubectl
from .applying import AddonStopped
from .record import APPLIED_FROM, RECORD_LABEL, name_of

_KEY = "packed"
"""Of the Secret's data: the objects as JSON, by gzip."""
_MOST = 1024 * 1024
"""Bytes that a Secret holds (kubernetes.io/docs/concepts/configuration/secret, read 2026-11). Helm
keeps a release in one too, with its chart: what Helm installs fits."""


def applied_of(addon: str, cluster: str, content: str, objects: Iterable[Object]) -> Object:
    """Return the Secret that holds what is applied of an add-on.

    Args:
        addon: its name.
        cluster: for the label.
        content: hash of what it was rendered from, as in its record.
        objects: in the order of their application.

    Raises:
        AddonStopped: GC1062: it is larger than a Secret may be.
    """
    packed = gzip.compress(msgspec.json.encode(list(objects)), mtime=0)
    if len(packed) > _MOST:
        raise AddonStopped(
            "GC1062",
            f"add-on {addon} has {len(packed) / _MOST:.1f} MiB of objects, packed: a cluster keeps "
            "1 MiB of what was applied of one",
            hint="part it into several add-ons of a catalog file of your own",
        )
    return new(
        "v1",
        "Secret",
        name_of(addon),
        namespace=SYSTEM_NAMESPACE,
        labels={CLUSTER_LABEL: cluster, RECORD_LABEL: addon},
        annotations={APPLIED_FROM: content},
        type="Opaque",
        data={_KEY: base64.b64encode(packed).decode()},
    )


def read_applied(kubectl: Kubectl, addon: str) -> tuple[Object, ...]:
    """Return what was applied of an add-on, in order.

    Raises:
        AddonStopped: GC1070: somebody wrote over it.
        ApiSilent: no API server answers.
        ApiRefused: it says no.
    """
    told: Any = kubectl.get("secret", name_of(addon), f"--namespace={SYSTEM_NAMESPACE}")
    try:
        packed = base64.b64decode(told["data"][_KEY], validate=True)
        return decode_json(gzip.decompress(packed), tuple[dict[str, Any], ...])
    except (KeyError, binascii.Error, OSError, EOFError, msgspec.DecodeError):
        raise AddonStopped(
            "GC1070",
            f"add-on {addon}: what was applied of it can't be read any more",
            hint=f"kubectl --namespace={SYSTEM_NAMESPACE} delete secret {name_of(addon)}; then "
            "gcluster up brings all of it anew",
        ) from None
