"""Data keys wrapped for an age identity: the user's, or one that gcluster makes for a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcluster.lifecycle.outcome import LifecycleError, failure
from gcluster.lifecycle.state.box import SecretBox
from gcluster.lifecycle.state.key_record import KeyRecord

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gcluster.schemas.spec.secrets import AgeSecrets


class AgeProvider:
    """An age identity by the spec, and those that a record was made with."""

    def __init__(self, secrets: AgeSecrets | None, cluster_id: str, keys_dir: Path) -> None:
        """Read and make nothing yet; `secrets` None: gcluster's own identity in `keys_dir`."""
        self._box = SecretBox.open(secrets, cluster_id, keys_dir)
        self._own = SecretBox.open(None, cluster_id, keys_dir)
        self._is_own = secrets is None

    @property
    def by(self) -> str:
        """The reference; of gcluster's own the file."""
        return f"age ({self._box.reference})"

    def prove(self) -> None:
        """Read a user's identity; gcluster's own is made with the first data key."""
        if not self._is_own:
            self._box.recipient()

    def wrap(self, identity: bytes, recipient: str) -> KeyRecord:
        """Encrypt a data key for the identity, which is made where it is gcluster's own."""
        mine = self._box.recipient(make=True)
        return KeyRecord(
            recipient=recipient,
            provider="age",
            wrapped_for=(mine,),
            reference="" if self._is_own else self._box.reference,
            wrapped=self._box.encrypt(identity),
        )

    def unwrap(self, record: KeyRecord) -> bytes:
        """Decrypt by the identity that fits, wherever it is by now."""
        box = self._fitting(record)
        return box.decrypt(record.wrapped, "the data key") if record.wrapped else box.identity()

    def is_of(self, record: KeyRecord) -> bool:
        """Compare the public halves; an identity that isn't here is taken for the same."""
        if record.provider != "age":
            return False
        try:
            return self._box.recipient() == record.wrapped_for[0]
        except LifecycleError:
            # gcluster makes its own for another cluster only: then the record's is a user's.
            return not (self._is_own and record.reference)

    def is_own_of(self, record: KeyRecord) -> bool:
        """Say whether gcluster's own identity opens a record, as far as can be known here."""
        if record.provider != "age":
            return False
        try:
            return self._own.recipient() == record.wrapped_for[0]
        except LifecycleError:
            return True

    def forget(self) -> None:
        """Delete the identity that gcluster made; never a user's."""
        self._own.forget()

    def _fitting(self, record: KeyRecord) -> SecretBox:
        unread: LifecycleError | None = None
        another: tuple[SecretBox, str] | None = None
        for box in self._candidates(record):
            try:
                mine = box.recipient()
            except LifecycleError as error:
                unread = unread or error
                continue
            if mine == record.wrapped_for[0]:
                return box
            another = another or (box, mine)
        if another is None and unread is not None:
            raise unread
        box, mine = another or (self._box, "")
        raise failure(
            "GC905",
            f"{box.reference} is not the key of this cluster: it is {mine}, and the "
            f"secrets are encrypted for {record.wrapped_for[0]}",
            hint="give the key that the cluster was made with"
            + (f" ({record.reference})" if record.reference else "")
            + "; to change to another, keep both: gcluster rotate encryption",
        )

    def _candidates(self, record: KeyRecord) -> Iterator[SecretBox]:
        """Yield where the identity may be: as the record says, as the spec says, gcluster's own."""
        seen: set[str] = set()
        named = (SecretBox(record.reference),) if record.reference else ()
        for box in (self._box, *named, self._own):
            if box.reference not in seen:
                seen.add(box.reference)
                yield box
