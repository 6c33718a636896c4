"""The age identity that encrypts a cluster's secrets: the user's own, or one made for the cluster.

The identity is read or made when it is first needed, never before, and never shown.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyrage  # type: ignore[import-untyped]  # it ships no types
from pyrage import IdentityError, x25519

from ...schemas.spec.secrets import AgeSecrets
from ..cluster.outcome import LifecycleError, failure
from .key_record import KeyRecord
from .references import UnreadableSecret, read_reference

if TYPE_CHECKING:
    from pyrage.x25519 import Identity  # type: ignore[import-untyped]

_PREFIX = "AGE-SECRET-KEY-1"
_LARGEST = 64 * 1024
"""Bytes of an identity file at most; age-keygen's are under 200."""


class AgeIdentity:
    """Encrypts and decrypts by one X25519 identity."""

    def __init__(self, reference: str, own: Path | None = None) -> None:
        """Take an identity by reference; nothing is read or made yet.

        Args:
            reference: env:NAME, file:PATH, or another place (`lifecycle.secrets.references`).
            own: the file, where gcluster made or makes the identity itself; None: a user's.
        """
        self.reference = reference
        self._own = own
        self._identity: Identity | None = None

    @classmethod
    def generated(cls, file: Path) -> AgeIdentity:
        """Return an identity that gcluster makes itself, in a file outside the state.

        Nothing is read or made yet.
        """
        return cls(f"file:{file}", file)

    @classmethod
    def from_key(cls, identity: bytes, what: str) -> AgeIdentity:
        """Return an available identity; `what` is its name in messages.

        Raises:
            LifecycleError: it is malformed (GC905).
        """
        box = cls(what)
        box._identity = box._parse(identity.decode(errors="replace"))
        return box

    def __repr__(self) -> str:
        """Show the reference only."""
        return f"AgeIdentity({self.reference!r})"

    def recipient(self, *, make: bool = False) -> str:
        """Return the public key, "age1...".

        Args:
            make: make an identity where this is gcluster's own and none is there.

        Raises:
            LifecycleError: the identity is missing or malformed (GC905, names the reference).
        """
        if make and self._own is not None:
            _make_identity(self._own)
            self._identity = None  # what was read before may be deleted: a `down` does that
        return str(self._unlocked().to_public())

    def identity(self) -> bytes:
        """Return the private key, as the text that age-keygen writes; never to be shown.

        Raises:
            LifecycleError: as `recipient`.
        """
        return str(self._unlocked()).encode()

    def encrypt(self, plaintext: bytes) -> bytes:
        """Return the age ciphertext.

        Raises:
            LifecycleError: as `recipient`.
        """
        return bytes(pyrage.encrypt(plaintext, [self._unlocked().to_public()]))

    def decrypt(self, ciphertext: bytes, name: str) -> bytes:
        """Return the plaintext of the secret that messages call `name`.

        Raises:
            LifecycleError: as `recipient`; GC905 too when the identity is another or the
                ciphertext is damaged.
        """
        try:
            return bytes(pyrage.decrypt(ciphertext, [self._unlocked()]))
        except pyrage.DecryptError as error:
            raise failure(
                "GC905",
                f"secret {name} can't be decrypted by {self.reference}: "
                "it is another key, or the object is damaged",
                hint="give the key that the cluster was made with",
            ) from error

    def forget(self) -> None:
        """Delete the identity if gcluster made it; a user's own is never touched."""
        self._identity = None
        if self._own is not None:
            try:
                self._own.unlink(missing_ok=True)
            except OSError as error:
                raise self._unusable(error.strerror or "it can't be deleted") from error

    def _unlocked(self) -> Identity:
        if self._identity is None:
            self._identity = self._parse(self._read())
        return self._identity

    def _read(self) -> str:
        scheme, _, place = self.reference.partition(":")
        if scheme == "env":
            value = os.environ.get(place, "")
            if not value:
                raise self._unusable(f"the environment variable {place} is not set")
            return value
        if scheme != "file":
            return self._read_elsewhere()
        try:
            with Path(place).expanduser().open("rb") as file:
                return file.read(_LARGEST).decode()
        except UnicodeDecodeError as error:
            raise self._unusable("it is not text") from error
        except (OSError, RuntimeError) as error:  # RuntimeError: no home for "~user"
            raise self._unusable(getattr(error, "strerror", None) or "it can't be read") from error

    def _read_elsewhere(self) -> str:

        try:
            return read_reference(self.reference)
        except UnreadableSecret as error:
            raise self._unusable(str(error)) from None

    def _parse(self, text: str) -> Identity:

        lines = [line.strip() for line in text.splitlines()]
        keys = [line for line in lines if line and not line.startswith("#")]
        if len(keys) != 1 or not keys[0].upper().startswith(_PREFIX):
            raise self._unusable(f"it must hold one line that begins with {_PREFIX}")
        try:
            return x25519.Identity.from_str(keys[0])
        except IdentityError:
            # `from None`: the library's message may quote the key
            raise self._unusable("it is malformed") from None

    def _unusable(self, why: str) -> LifecycleError:
        if self._own is not None:
            hint = (
                "gcluster made this key when the cluster was first brought up: "
                "copy it from that machine, 0600"
            )
        else:
            hint = "make one with age-keygen and name it in secrets.key: env:NAME or file:PATH"
        return failure(
            "GC905", f"the age identity {self.reference} can't be used: {why}", hint=hint
        )


def new_data_key() -> AgeIdentity:
    """Return the box of a new identity, which lies nowhere yet."""
    return AgeIdentity.from_key(str(x25519.Identity.generate()).encode(), "the data key")


def _make_identity(path: Path) -> None:
    """Make an identity, 0600, where there is none; that of a faster process is kept."""
    try:
        if path.exists():
            return
        identity = x25519.Identity.generate()
        text = f"# public key: {identity.to_public()}\n{identity}\n"
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # mkstemp makes it 0600 from the start; link, unlike rename, never replaces
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(temporary, path)
        finally:
            Path(temporary).unlink()
    except OSError as error:
        raise failure(
            "GC905",
            f"no age identity can be made at {path}: {error.strerror}",
            hint="name a key of your own in the spec: secrets: {provider: age, key: env:NAME}",
        ) from error


class AgeProvider:
    """An age identity by the spec, and those that a record was made with."""

    def __init__(
        self,
        secrets: AgeSecrets | None,
        cluster_id: str,
        keys_dir: Path,
        generation: Callable[[], int] = lambda: 0,
    ) -> None:
        """Read and make nothing yet.

        Args:
            secrets: the spec's; None: gcluster's own identity.
            cluster_id: names the file of that: "ID.key".
            keys_dir: where it is.
            generation: number of the last data key that a whole cluster was removed with; 0: none
                was. Earlier identities may still be deleted, so a new one is "ID.GENERATION.key".
        """
        self._id = cluster_id
        self._keys = keys_dir
        self._generation = generation
        self._identities: dict[Path, AgeIdentity] = {}
        self._user_identity = None if secrets is None else AgeIdentity(secrets.key)

    @property
    def _is_own(self) -> bool:
        return self._user_identity is None

    @property
    def _own(self) -> AgeIdentity:
        generation = self._generation()
        return self._of_file(
            self._keys / (f"{self._id}.{generation}.key" if generation else f"{self._id}.key")
        )

    @property
    def _box(self) -> AgeIdentity:
        return self._user_identity or self._own

    def _of_file(self, file: Path) -> AgeIdentity:
        return self._identities.setdefault(file, AgeIdentity.generated(file))

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
        """Return whether gcluster's own identity opens a record, as far as can be known here."""
        if record.provider != "age":
            return False
        try:
            return any(box.recipient() == record.wrapped_for[0] for box in self._owns())
        except LifecycleError:
            return True

    def forget(self, files: Iterable[Path]) -> None:
        """Delete identities that gcluster made, out of `files`; never a user's."""
        for file in files:
            self._of_file(file).forget()

    def _owns(self) -> tuple[AgeIdentity, ...]:
        """Return gcluster's own: all that are here; where none is, the one that should be."""
        return tuple(self._of_file(file) for file in reversed(self.files())) or (self._own,)

    def _fitting(self, record: KeyRecord) -> AgeIdentity:
        unread: LifecycleError | None = None
        another: tuple[AgeIdentity, str] | None = None
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

    def _candidates(self, record: KeyRecord) -> Iterator[AgeIdentity]:
        """Yield the possible places of the identity: from record or spec, and gcluster's own."""
        seen: set[str] = set()
        named = (AgeIdentity(record.reference),) if record.reference else ()
        owns = self._owns()
        first = owns if self._user_identity is None else (self._user_identity,)
        for box in (*first, *named, *owns):
            if box.reference not in seen:
                seen.add(box.reference)
                yield box
