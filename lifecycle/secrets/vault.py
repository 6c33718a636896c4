"""A cluster's secrets: stored only encrypted, made once, shown only to the process that needs them.

They are encrypted for the cluster's data key (`keyring.py`), which is opened before anything is
made with it, so that a wrong key is found then. Their object names are in `ciphertexts.py`.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from ...schemas.spec.secrets import Secrets
from ...stacks.io.process import is_running
from ..cluster.outcome import LifecycleError, failure
from ..state.bucket import AlreadyExists
from ..state.process import pid_namespace, this_process
from ..state.store import StateStore
from . import ciphertexts
from .age import AgeIdentity
from .ciphertexts import Ciphertext, Place, keys_in_use, reencrypt_secret
from .key_record import PREFIX as KEYS
from .keyring import Keyring

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_MUNGE_KEY_BYTES = 1024
"""The most that munge takes, and what mungekey(8) calls the maximum: 8192 bits."""


class SecretVersion(msgspec.Struct, frozen=True, kw_only=True):
    """Which value of a secret: safe to show, to hash and to keep."""

    name: str
    number: int
    fingerprint: str
    """Of its first ciphertext: differs when a secret is rotated."""

    @property
    def id(self) -> str:
        """Name, number and fingerprint: "munge@1.5f0c93a2b1de"."""
        return f"{self.name}@{self.number}.{self.fingerprint}"


class SecretVault:
    """The secrets of one cluster."""

    def __init__(self, store: StateStore, keyring: Keyring) -> None:
        """Hold the parts; nothing is read or made yet."""
        self._store = store
        self.keyring = keyring

    @classmethod
    def open(
        cls,
        store: StateStore,
        spec: Secrets | None,
        cluster_id: str,
        keys_dir: Path,
        folder: Path | None = None,
    ) -> SecretVault:
        """Return the vault of a cluster.

        Args:
            store: its state.
            spec: `secrets:` of its spec; None: an age identity made in `keys_dir`.
            cluster_id: id of its state.
            keys_dir: a directory outside the state.
            folder: where the spec is, for sops; None: here.
        """
        return cls(store, Keyring(store, spec, cluster_id, keys_dir, folder or Path()))

    def __repr__(self) -> str:
        """Show where, never what."""
        return f"SecretVault({self._store.url!r}, {self.keyring!r})"

    def ensure(self, name: str, make: Callable[[], bytes]) -> SecretVersion:
        """Return the newest version of a secret; make the first where there is none.

        When two processes race, both get the one that was stored.

        Raises:
            LifecycleError: the data key can't be opened or created.
        """
        if self._newest(name) is None:
            number, box = self._data_key()
            fresh = ciphertexts.fresh(box.encrypt(make()))
            with suppress(AlreadyExists):  # another was faster: its value is kept
                self._put(name, 1, number, fresh)
        return self._version(name)

    def keep(self, name: str, value: bytes) -> SecretVersion:
        """Store a secret from outside: a new version where it differs from the newest.

        Raises:
            LifecycleError: the data key can't be opened or created.
        """
        newest = self._newest(name)
        if newest is None or self.reveal(name) != value:
            number, box = self._data_key()
            fresh = ciphertexts.fresh(box.encrypt(value))
            self._put(name, 1 if newest is None else newest.number + 1, number, fresh)
        return self._version(name)

    def version(self, name: str) -> str | None:
        """Return the id of the newest version, safe to hash into a stamp; None: not made yet.

        Needs no key.
        """
        place = self._newest(name)
        found = None if place is None else ciphertexts.read(self._store, place)
        return None if place is None or found is None else _version_of(name, place, found).id

    def reveal(self, name: str) -> bytes:
        """Return the newest value of a secret.

        Raises:
            LifecycleError: there is no such secret, or the key can't decrypt it.
        """
        place, found = self._found(name)
        record = self.keyring.records()[place.key]
        return self.keyring.data_key(record).decrypt(found.box, f"{name}@{place.number}")

    def seal(self, stem: str, plaintext: bytes) -> None:
        """Encrypt and store something that isn't a secret of a step, such as a saved queue.

        Raises:
            LifecycleError: as `keep`.
        """
        number, box = self._data_key()
        self._store.put_new(ciphertexts.sealed_path(stem, number), box.encrypt(plaintext))

    def unseal(self, stem: str, what: str) -> bytes | None:
        """Decrypt what `seal` stored; `what` names it in the error; None: there is none.

        Raises:
            LifecycleError: the key can't decrypt it.
        """
        records = self.keyring.records()
        places = ciphertexts.sealed_in(self._store, stem.rpartition("/")[0])
        place = ciphertexts.newest(places, records).get(stem)
        found = None if place is None else self._store.get(place.path)
        if place is None or found is None:
            return None
        return self.keyring.data_key(records[place.key]).decrypt(found, what)

    def prove(self) -> None:
        """Check that secrets can be read and created; nothing is stored.

        Raises:
            LifecycleError: the data key can't be opened, or the provider can't wrap the first.
        """
        records = keys_in_use(self._store, self.keyring)
        if records:
            self.keyring.data_key(records[max(records)])
        else:
            self.keyring.provider.prove()

    @contextmanager
    def materialise(self, names: Iterable[str]) -> Iterator[dict[str, Path]]:
        """Give the newest values as files (0600, in memory) for the body of the `with`.

        Raises:
            LifecycleError: as `reveal`.
        """
        values = {name: self.reveal(name) for name in names}
        with secret_files(values) as paths:
            yield paths

    def forget_all(self, go_on: Callable[[], None], *, but: str = "") -> None:
        """Delete every ciphertext, the data keys, and the identity if gcluster created it.

        What is deleted is listed first, under names that are never used again: a process that is
        delayed here and loses the lock deletes nothing of the next holder.

        Args:
            go_on: raises where this process no longer holds the lock; called before the first
                delete.
            but: a secret to keep, under a new data key.

        Raises:
            LifecycleError: the store can't be written, the key of what is kept can't be opened, or
                what `go_on` raises.
        """
        kept = bool(but) and self._newest(but) is not None
        paths = self._store.list(ciphertexts.PREFIX)
        if kept and all(path.startswith(f"{ciphertexts.PREFIX}/{but}/") for path in paths):
            go_on()
            return
        numbers = self.keyring.end(but_some=kept)
        identities = () if kept else self.keyring.identities()
        target = self.keyring.next_number()
        go_on()
        if kept:
            reencrypt_secret(self._store, self.keyring, but, target)
        for path in paths:
            self._store.delete(path)
        for number in numbers:
            self.keyring.forget(number)
        self.keyring.forget_identities(identities)

    def _data_key(self) -> tuple[int, AgeIdentity]:
        """Return the newest data key with its number, opened; make the first."""
        number, record = self.keyring.current()
        return number, self.keyring.data_key(record or self.keyring.make(number))

    def _newest(self, name: str) -> Place | None:
        if not _NAME.fullmatch(name):
            raise ValueError(f"not a secret's name: {name!r}")
        places = ciphertexts.secrets_in(self._store, name)
        records = self.keyring.records() if places else {}
        keys = {place.key for place in places}
        if keys and not records and not keys <= self.keyring.forgotten():
            raise self._store.damaged(f"{KEYS}/000001.json", "it is gone, and secrets are there")
        known = ciphertexts.newest(places, records).values()
        return max(known, key=lambda place: place.number, default=None)

    def _put(self, name: str, number: int, key: int, ciphertext: Ciphertext) -> None:
        path = ciphertexts.secret_path(name, number, key)
        self._store.put_new(path, msgspec.json.encode(ciphertext))

    def _version(self, name: str) -> SecretVersion:
        return _version_of(name, *self._found(name))

    def _found(self, name: str) -> tuple[Place, Ciphertext]:
        place = self._newest(name)
        found = None if place is None else ciphertexts.read(self._store, place)
        if place is None or found is None:
            raise _missing(name)
        return place, found


def _version_of(name: str, place: Place, found: Ciphertext) -> SecretVersion:
    return SecretVersion(name=name, number=place.number, fingerprint=found.fingerprint)


def munge_key() -> bytes:
    """Return a new munge key: 1024 random bytes."""
    return secrets.token_bytes(_MUNGE_KEY_BYTES)


def _missing(name: str) -> LifecycleError:
    return failure("GC905", f"the cluster has no secret {name}", hint="gcluster up makes it")


_PREFIX = "gcluster-secrets"


@contextmanager
def secret_files(values: Mapping[str, bytes]) -> Iterator[dict[str, Path]]:
    """Write each value to a file of its name, 0600, in a new 0700 directory; remove it at the end.

    What killed processes of this user left behind is removed first.

    Raises:
        LifecycleError: the directory can't be made.
    """
    base = _base()
    _sweep(base)
    me = this_process()
    prefix = f"{_PREFIX}.{os.getuid()}.{me.namespace}.{me.pid}.{me.started}."
    try:
        directory = Path(tempfile.mkdtemp(prefix=prefix, dir=base))
    except OSError as error:
        raise failure(
            "GC905", f"no place in memory for secrets: {base}: {error.strerror}"
        ) from error
    try:
        yield {name: _write(directory / name, value) for name, value in values.items()}
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _base() -> Path:
    """Return a directory in memory; where there is none, the usual one for temporary files."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    for place in (runtime, "/dev/shm"):  # noqa: S108 - tmpfs on purpose; the directory in it is 0700
        if place.startswith("/") and os.access(place, os.W_OK | os.X_OK) and Path(place).is_dir():
            return Path(place)
    return Path(tempfile.gettempdir())


def _write(path: Path, value: bytes) -> Path:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(value)
    return path


def _sweep(base: Path) -> None:
    mine = f"{_PREFIX}.{os.getuid()}.{pid_namespace()}."
    for directory in base.glob(f"{_PREFIX}.*"):
        if not directory.name.startswith(mine):
            continue
        pid, _, rest = directory.name.removeprefix(mine).partition(".")
        started = rest.partition(".")[0]
        if pid.isdecimal() and not is_running(int(pid), started) and _is_ours(directory):
            shutil.rmtree(directory, ignore_errors=True)


def _is_ours(directory: Path) -> bool:
    """Return whether it is a real directory of this user: others may write to the base, too."""
    try:
        found = directory.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
