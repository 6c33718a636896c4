"""A cluster's secrets: stored only encrypted, made once, shown only to the process that needs them.

`secrets/<name>/000001.age` is created once and never changed. `secrets/recipient` is the public key
that all of them are encrypted for, so that a wrong key is found before anything is made with it.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gcluster.lifecycle.outcome import LifecycleError, failure
from gcluster.lifecycle.state.box import SecretBox
from gcluster.lifecycle.state.bucket import AlreadyExists
from gcluster.lifecycle.state.secret_files import secret_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gcluster.lifecycle.state.store import StateStore
    from gcluster.schemas.spec.secrets import AgeSecrets

PREFIX = "secrets"
_RECIPIENT = f"{PREFIX}/recipient"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_MUNGE_KEY_BYTES = 1024
"""The most that munge takes, and what mungekey(8) calls the maximum: 8192 bits."""


class SecretVersion(msgspec.Struct, frozen=True, kw_only=True):
    """Which value of a secret: safe to show, to hash and to keep."""

    name: str
    number: int
    fingerprint: str
    """First 12 hex digits of the ciphertext's SHA-256: differs when a secret is made anew."""

    @property
    def id(self) -> str:
        """Name, number and fingerprint: "munge@1.5f0c93a2b1de"."""
        return f"{self.name}@{self.number}.{self.fingerprint}"


class SecretVault:
    """The secrets of one cluster."""

    def __init__(self, store: StateStore, box: SecretBox) -> None:
        """Hold the parts; nothing is read or made yet."""
        self._store = store
        self._box = box

    @classmethod
    def open(
        cls, store: StateStore, spec: AgeSecrets | None, cluster_id: str, keys_dir: Path
    ) -> SecretVault:
        """Return the vault of a cluster; see `SecretBox.open`."""
        return cls(store, SecretBox.open(spec, cluster_id, keys_dir))

    def __repr__(self) -> str:
        """Show where, never what."""
        return f"SecretVault({self._store.url!r}, {self._box!r})"

    def ensure(self, name: str, make: Callable[[], bytes]) -> SecretVersion:
        """Return the newest version of a secret; make the first where there is none.

        When two processes race, both get the one that was stored.

        Raises:
            LifecycleError: the key is missing, malformed, or another than the cluster's (GC905).
        """
        number = self._newest(name)
        if number == 0:
            number = 1
            self._check_recipient()
            ciphertext = self._box.encrypt(make())
            with suppress(AlreadyExists):  # another was faster: its value stands
                self._store.put_new(_key(name, number), ciphertext)
        return self._version(name, number)

    def keep(self, name: str, value: bytes) -> SecretVersion:
        """Keep a secret that somebody else made: a version more where it differs from the newest.

        Raises:
            LifecycleError: the key is missing, malformed, or another than the cluster's (GC905).
        """
        number = self._newest(name)
        if number and self.reveal(name) == value:
            return self._version(name, number)
        self._check_recipient()
        self._store.put_new(_key(name, number + 1), self._box.encrypt(value))
        return self._version(name, number + 1)

    def version(self, name: str) -> str | None:
        """Return the id of the newest version, safe to hash into a stamp; None: not made yet.

        Needs no key.
        """
        number = self._newest(name)
        return self._version(name, number).id if number else None

    def reveal(self, name: str) -> bytes:
        """Return the newest value of a secret.

        Raises:
            LifecycleError: there is no such secret, or the key can't decrypt it.
        """
        number = self._newest(name)
        return self._box.decrypt(self._ciphertext(name, number), f"{name}@{number}")

    def seal(self, plaintext: bytes) -> bytes:
        """Encrypt something of the cluster that isn't a secret of a step, such as a saved queue.

        Raises:
            LifecycleError: as `keep`.
        """
        self._check_recipient()
        return self._box.encrypt(plaintext)

    def unseal(self, ciphertext: bytes, what: str) -> bytes:
        """Decrypt what `seal` made; `what` names it in the error.

        Raises:
            LifecycleError: the key can't decrypt it.
        """
        return self._box.decrypt(ciphertext, what)

    @contextmanager
    def materialise(self, names: Iterable[str]) -> Iterator[dict[str, Path]]:
        """Give the newest values as files (0600, in memory) for the body of the `with`.

        Raises:
            LifecycleError: as `reveal`.
        """
        values = {name: self.reveal(name) for name in names}
        with secret_files(values) as paths:
            yield paths

    def forget_all(self, *, but: str = "") -> None:
        """Delete every ciphertext, and the identity if gcluster made it.

        `but` is a secret to keep, with the identity that reads it.
        """
        kept = bool(but) and self._newest(but) > 0
        for key in self._store.list(PREFIX):
            if not (kept and (key == _RECIPIENT or key.startswith(f"{PREFIX}/{but}/"))):
                self._store.delete(key)
        if not kept:
            self._box.forget()

    def _check_recipient(self) -> None:
        """Record the public key at first use; refuse another one afterwards."""
        known = self._store.get(_RECIPIENT)
        mine = self._box.recipient(make=known is None)
        if known is None:
            try:
                self._store.put_new(_RECIPIENT, mine.encode())
            except AlreadyExists:
                known = self._store.get(_RECIPIENT)
        if known is not None and known != mine.encode():
            raise failure(
                "GC905",
                f"{self._box.reference} is not the key of this cluster: it is {mine}, and the "
                f"secrets are encrypted for {known.decode(errors='replace')}",
                hint="give the key that the cluster was made with",
            )

    def _newest(self, name: str) -> int:
        if not _NAME.fullmatch(name):
            raise ValueError(f"not a secret's name: {name!r}")
        stems = (
            Path(key).name.removesuffix(".age") for key in self._store.list(f"{PREFIX}/{name}")
        )
        return max((int(stem) for stem in stems if stem.isdecimal()), default=0)

    def _version(self, name: str, number: int) -> SecretVersion:
        fingerprint = hashlib.sha256(self._ciphertext(name, number)).hexdigest()[:12]
        return SecretVersion(name=name, number=number, fingerprint=fingerprint)

    def _ciphertext(self, name: str, number: int) -> bytes:
        found = self._store.get(_key(name, number)) if number else None
        if found is None:
            raise _missing(name)
        return found


def munge_key() -> bytes:
    """Return a new munge key: 1024 random bytes."""
    return secrets.token_bytes(_MUNGE_KEY_BYTES)


def _key(name: str, number: int) -> str:
    return f"{PREFIX}/{name}/{number:06d}.age"


def _missing(name: str) -> LifecycleError:
    return failure("GC905", f"the cluster has no secret {name}", hint="gcluster up makes it")
