"""Data keys wrapped for an age identity: the user's, or one that gcluster makes for a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ...schemas.spec.secrets import AgeSecrets
from ..outcome import LifecycleError, failure
from .box import SecretBox
from .key_record import KeyRecord


class AgeProvider:
    """An age identity by the spec, and those that a record was made with."""

    def __init__(
        self,
        secrets: AgeSecrets | None,
        cluster_id: str,
        keys_dir: Path,
        life: Callable[[], int] = lambda: 0,
    ) -> None:
        """Read and make nothing yet.

        Args:
            secrets: the spec's; None: gcluster's own identity.
            cluster_id: names the file of that: "ID.key".
            keys_dir: where it is.
            life: number of the last data key that went with a whole cluster; 0: none did. What was
                made before it, somebody may still delete, so a new identity is "ID.LIFE.key".
        """
        self._id = cluster_id
        self._keys = keys_dir
        self._life = life
        self._boxes: dict[Path, SecretBox] = {}
        self._theirs = None if secrets is None else SecretBox(secrets.key)

    @property
    def _is_own(self) -> bool:
        return self._theirs is None

    @property
    def _own(self) -> SecretBox:
        life = self._life()
        return self._of_file(self._keys / (f"{self._id}.{life}.key" if life else f"{self._id}.key"))

    @property
    def _box(self) -> SecretBox:
        return self._theirs or self._own

    def _of_file(self, file: Path) -> SecretBox:
        return self._boxes.setdefault(file, SecretBox.made(file))

    def files(self) -> tuple[Path, ...]:
        """Return the files here of identities that gcluster made for the cluster."""
        names = (f"{self._id}.key", f"{self._id}.*.key")
        return tuple(sorted(file for name in names for file in self._keys.glob(name)))

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
        return self._fitting(record).decrypt(record.wrapped, "the data key")

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
            return any(box.recipient() == record.wrapped_for[0] for box in self._owns())
        except LifecycleError:
            return True

    def forget(self, files: Iterable[Path]) -> None:
        """Delete identities that gcluster made, of those that `files` told; never a user's."""
        for file in files:
            self._of_file(file).forget()

    def _owns(self) -> tuple[SecretBox, ...]:
        """Return gcluster's own: all that are here; where none is, the one that should be."""
        return tuple(self._of_file(file) for file in reversed(self.files())) or (self._own,)

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
        owns = self._owns()
        first = owns if self._theirs is None else (self._theirs,)
        for box in (*first, *named, *owns):
            if box.reference not in seen:
                seen.add(box.reference)
                yield box
