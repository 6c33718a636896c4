"""The state of one cluster as named objects, with its identity and the layout's version.

Every object carries its hash: a changed object is GC900, named, with the command that continues
from there, and is never ignored silently. A JSON object gets the hash as its first member,
`object_sha256`, and stays a JSON object; all other content gets it as a first line. The hash is of
the object's key and content, so that a copy of another object is damage too.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from ...schemas.diagnostics import Diagnostic, Severity
from ...schemas.structure.decoding import decode_json
from ..cluster.outcome import LifecycleError, failure
from .bucket import AlreadyExists, Bucket
from .connect import connect

IDENTITY_KEY = "cluster.json"
FORMAT_KEY = "format.json"
FORMAT = 4
"""Version of the layout: the only one that is read, and the one that is written."""
OLDEST = 3
"""Version from which `gcluster state upgrade` rewrites a state."""

ASIDE = "damaged"
"""Prefix of what repair found damaged: the bytes as they were."""
_AFTER_IDENTITY = ("applied", "events", "keyring")

T = TypeVar("T")
_MEMBER = re.compile(rb'\{"object_sha256":"([0-9a-f]{64})"')
_LINE = re.compile(rb"sha256:([0-9a-f]{64})\n")


class DamageError(ValueError):
    """Bytes that differ from what was written under this key; the message has the proof."""


def digest(key: str, content: bytes) -> str:
    """Return the hash of an object, in hex."""
    return hashlib.sha256(key.encode() + b"\0" + content).hexdigest()


def with_hash(key: str, content: bytes) -> bytes:
    """Return the bytes that are stored for an object."""
    hashed = digest(key, content).encode()
    if not content.startswith(b"{"):
        return b"sha256:" + hashed + b"\n" + content
    rest = content[1:]
    comma = b"" if rest.lstrip().startswith(b"}") else b","
    return b'{"object_sha256":"' + hashed + b'"' + comma + rest


def has_hash(stored: bytes) -> bool:
    """Return whether bytes begin like those with a hash."""
    return bool(_MEMBER.match(stored) or _LINE.match(stored))


def without_hash(key: str, stored: bytes) -> bytes:
    """Return an object's content; the inverse of `with_hash`.

    Raises:
        DamageError: the bytes are not those that were stored under this key.
    """
    if not stored:
        raise DamageError("it is empty")
    if found := _MEMBER.match(stored):
        content = b"{" + stored[found.end() :].removeprefix(b",")
    elif found := _LINE.match(stored):
        content = stored[found.end() :]
    else:
        raise DamageError("it has no hash" if _is_json(stored) else "it is cut off or overwritten")
    if found[1].decode() != digest(key, content):
        raise DamageError("its content doesn't have its hash")
    return content


def _is_json(stored: bytes) -> bool:
    try:
        msgspec.json.decode(stored)
    except msgspec.DecodeError:
        return False
    return True


class ClusterIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Who the state belongs to."""

    id: str
    """16 random hex digits: distinguishes two clusters of the same name."""
    name: str
    created: datetime


def utc_now() -> datetime:
    """Return the time now, in UTC."""
    return datetime.now(UTC)


class DamagedObjectError(LifecycleError):
    """An object of the state is missing or not as it was written (GC900)."""

    def __init__(self, key: str, problem: object, target: str) -> None:
        """Hold the object's key and what is wrong; `target` names the cluster in commands."""
        super().__init__(damage(key, problem, target))
        self.key = key
        self.problem = str(problem)


def damage(key: str, problem: object, target: str) -> Diagnostic:
    """Return the finding (GC900) for an object that is missing or not as it was written."""
    return Diagnostic(
        code="GC900",
        severity=Severity.ERROR,
        summary=f"state object {key} is damaged: {problem}",
        hint=f"gcluster state check {target} lists all damage, gcluster state repair {target} "
        "rebuilds what can be; nothing was changed",
    )


class OldFormatError(LifecycleError):
    """The state has an older layout, which can be upgraded (GC902)."""


class _Format(msgspec.Struct, frozen=True):
    """Content of `format.json`."""

    version: int


class StateStore:
    """Named objects of one cluster. Reading creates nothing; the first write lays the store out."""

    def __init__(
        self,
        bucket: Bucket,
        *,
        url: str,
        clock: Callable[[], datetime] = utc_now,
        target: str = "CLUSTER",
        checks_format: bool = True,
        oldest: int = FORMAT,
    ) -> None:
        """Set an opened bucket; `open` is the usual constructor.

        Args:
            bucket: where the objects are.
            url: its name in messages.
            clock: returns the time in UTC.
            target: the cluster, as commands in messages name it.
            checks_format: False: a version that can't be read is no error yet, for repair.
            oldest: version of the layout that is written without an upgrade, for the upgrade
                itself.

        Raises:
            LifecycleError: the state has another format (GC902), or can't be read.
        """
        self.url = url
        self.target = target
        self._bucket = bucket
        self._clock = clock
        self._has_format = False
        self._oldest = oldest
        self.version: int | None = None
        """Of the layout, as it was when it was read; None: there is none yet."""
        if checks_format:
            self.check_format()

    @classmethod
    def open(
        cls,
        url: str,
        *,
        target: str = "CLUSTER",
        checks_format: bool = True,
        oldest: int = FORMAT,
    ) -> StateStore:
        """Open the state at a URL; the arguments are those of the class.

        Raises:
            LifecycleError: an unknown scheme, a path that can't be used, or another format.
        """
        return cls(connect(url), url=url, target=target, checks_format=checks_format, oldest=oldest)

    def check_format(self) -> None:
        """Read the version of the layout again: others may have changed it since.

        Raises:
            LifecycleError: it is not the one that this version reads (GC902), or damaged (GC900).
        """
        version = self.version = self._version()
        if version is not None and not self._oldest <= version <= FORMAT:
            raise _other_format(self.url, version, self.target)
        if version is None and self._bucket.get(IDENTITY_KEY) is not None:
            raise self.damaged(FORMAT_KEY, "it is missing")
        self._has_format = version is not None

    def _version(self) -> int | None:
        """Return the version of the layout; other versions' need not carry a hash."""
        stored = self._bucket.get(FORMAT_KEY)
        if stored is None:
            return None
        try:
            version = decode_json(stored, _Format).version
            if version == FORMAT or has_hash(stored):
                without_hash(FORMAT_KEY, stored)
        except (msgspec.DecodeError, UnicodeDecodeError, DamageError) as error:
            raise self.damaged(FORMAT_KEY, error) from error
        if version < 1:
            raise self.damaged(FORMAT_KEY, f"there is no version {version}")
        return version

    def damaged(self, key: str, problem: object) -> DamagedObjectError:
        """Return the error for an object that is missing or not as it was written."""
        return DamagedObjectError(key, problem, self.target)

    def put_new(self, key: str, data: bytes) -> None:
        """Write an object that must not exist yet.

        Raises:
            AlreadyExists: it does; it was not touched.
            LifecycleError: the store can't be written.
        """
        self._lay_out()
        self._bucket.create(key, with_hash(key, data))

    def put(self, key: str, data: bytes) -> None:
        """Write a cache or an artifact, replacing what was there as a whole.

        Raises:
            LifecycleError: the store can't be written.
        """
        self._lay_out()
        self._bucket.replace(key, with_hash(key, data))

    def get(self, key: str) -> bytes | None:
        """Return an object's bytes; None where there is none.

        Raises:
            DamagedObjectError: they aren't those that were written.
        """
        stored = self._bucket.get(key)
        if stored is None:
            return None
        try:
            return without_hash(key, stored)
        except DamageError as error:
            raise self.damaged(key, error) from error

    def stored(self, key: str) -> bytes | None:
        """Return an object's bytes as they lie there, with a hash or without one; None: none."""
        return self._bucket.get(key)

    def list(self, prefix: str, *, after: str | None = None) -> list[str]:
        """Return the keys under a prefix of whole path segments, sorted; those after `after`."""
        return self._bucket.list(prefix, after)

    def delete(self, key: str) -> None:
        """Remove an object: secrets at the end of a cluster, nothing else."""
        self._bucket.delete(key)

    def set_aside(self, key: str) -> str:
        """Move an object's bytes, whatever they are, out of the way; return their new key."""
        stored = self._bucket.get(key)
        aside = f"{ASIDE}/{self._clock():%Y%m%dT%H%M%S}-{secrets.token_hex(2)}/{key}"
        if stored is not None:
            self._bucket.create(aside, stored)
            self._bucket.delete(key)
        return aside

    def read(self, key: str, kind: type[T]) -> T | None:
        """Return a JSON object as `kind`; None where there is none.

        Raises:
            DamagedObjectError: it is there and isn't one.
        """
        data = self.get(key)
        if data is None:
            return None
        try:
            return decode_json(data, kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self.damaged(key, error) from error

    def identity(self) -> ClusterIdentity | None:
        """Return the identity of the state's cluster; None: not written yet.

        Raises:
            DamagedObjectError: there is none, but objects that only a cluster can have left.
        """
        found = self.read(IDENTITY_KEY, ClusterIdentity)
        if found is None and (left := self.left_by_a_cluster()):
            found = self.read(IDENTITY_KEY, ClusterIdentity)  # another process may have written it
            if found is None:
                raise self.damaged(IDENTITY_KEY, f"it is missing, and {left} is there")
        return found

    def left_by_a_cluster(self) -> str:
        """Return the key of something that is written only after the identity; "": nothing is."""
        found = (key for prefix in _AFTER_IDENTITY for key in self.list(prefix))
        return next(found, "")

    def identify(self, name: str) -> ClusterIdentity:
        """Return the cluster's identity, made once; processes that race get the same one.

        Raises:
            LifecycleError: the state belongs to a cluster of another name.
        """
        found = self.identity()
        if found is None:
            made = ClusterIdentity(id=secrets.token_hex(8), name=name, created=self._clock())
            found = self.found(made)
        if found.name != name:
            raise failure(
                "GC901",
                f'state at {self.url} belongs to cluster "{found.name}", not to "{name}"',
                hint="give each cluster a state of its own; a cluster can't be renamed",
            )
        return found

    def found(self, identity: ClusterIdentity) -> ClusterIdentity:
        """Write the identity of the state's cluster; return another process's, if it was first."""
        try:
            self.put_new(IDENTITY_KEY, msgspec.json.encode(identity))
        except AlreadyExists:
            faster = self.read(IDENTITY_KEY, ClusterIdentity)
            if faster is None:
                raise self.damaged(IDENTITY_KEY, "it vanished") from None
            return faster
        return identity

    def write_format_again(self) -> None:
        """Write the version of the layout in the place of one that is damaged or missing."""
        content = msgspec.json.encode(_Format(FORMAT))
        self._bucket.replace(FORMAT_KEY, with_hash(FORMAT_KEY, content))
        self._has_format = True

    def _lay_out(self) -> None:
        if self._has_format:
            return
        content = msgspec.json.encode(_Format(FORMAT))
        try:
            self._bucket.create(FORMAT_KEY, with_hash(FORMAT_KEY, content))
            self._has_format = True
        except AlreadyExists:
            self.check_format()


def _other_format(url: str, version: int, target: str) -> LifecycleError:
    summary = (
        f"state at {url} was written by {'a newer' if version > FORMAT else 'an older'} gcluster: "
        f"its format is {version}, this version reads {FORMAT}"
    )
    if OLDEST <= version < FORMAT:
        hint = (
            f"gcluster up {target} rewrites it for this version, gcluster state upgrade "
            f"{target} does that alone; an older gcluster can't read it then"
        )
        found = Diagnostic(code="GC902", severity=Severity.ERROR, summary=summary, hint=hint)
        return OldFormatError(found)
    return failure(
        "GC902",
        summary,
        hint="upgrade gcluster on this machine"
        if version > FORMAT
        else "take the cluster down with the version that made it, delete what it left there, "
        "and bring the cluster up with this one",
    )
