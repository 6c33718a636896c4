"""A cluster's data key in the state: encrypted by the provider in the spec's `secrets:`.

A data key is an age identity (X25519). `keyring/000001.json` holds it wrapped, with its public
half, for which the secrets are encrypted. It is created once and never changed; the newest one
counts.

A deletion is announced first, by `keyring/000001.ended` (with the whole cluster) or
`keyring/000001.moved` (what is kept is encrypted for the next one). These objects are kept: a
number is never used again, nor are the names of what was encrypted for it. So a `down` that is
delayed in its last step and continues after others broke its lock deletes nothing of theirs.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

import msgspec

from ..cluster.outcome import LifecycleError, failure

Kind: TypeAlias = Literal["age", "sops"]
PREFIX = "keyring"


class KeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One data key: all of it may be shown."""

    recipient: str
    """Public half: "age1..."."""
    provider: Kind
    wrapped_for: tuple[str, ...]
    """The age recipient, or sops' recipients."""
    reference: str = ""
    """Where the age identity was ("env:NAME"; "": gcluster's own, or unknown), or the file whose
    rule sops went by."""
    wrapped: bytes
    """Ciphertext."""

    @property
    def by(self) -> str:
        """Name of the wrapping provider in messages."""
        if self.provider == "age":
            return f"age (for {self.wrapped_for[0]})"
        return f"sops (for {', '.join(self.wrapped_for)})"


class KeyProvider(Protocol):
    """Who wraps data keys: one implementation for each `provider:` of the spec's `secrets:`."""

    @property
    def by(self) -> str:
        """How messages call it."""
        ...

    def prove(self) -> None:
        """Go on where it could wrap and unwrap now; nothing is kept.

        Raises:
            LifecycleError: it can't be used.
        """
        ...

    def wrap(self, identity: bytes, recipient: str) -> KeyRecord:
        """Return the record of a data key; raises as `prove`."""
        ...

    def unwrap(self, record: KeyRecord) -> bytes:
        """Return the data key of a record of its kind; raises as `prove`, and GC905."""
        ...

    def is_of(self, record: KeyRecord) -> bool:
        """Return whether it would wrap for the same recipient; True where that is unknown here."""
        ...


def damaged(record: KeyRecord) -> LifecycleError:
    """Return the error for a data key that isn't the one its record names."""
    return failure(
        "GC905",
        f"the data key of this cluster, as {record.by} opens it, is not the one of its secrets",
        hint="give the key that the cluster was made with, or restore keyring/ of the state",
    )
