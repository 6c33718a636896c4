"""The bundle of one pool: its roles, its plays without a secret, and its signed manifest."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from importlib.metadata import distribution, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
)

from .....inventory.compile import CompiledCluster, Step
from ....cluster.outcome import failure
from ....nodes.converge.pending import Pending, PendingStep, pending_steps
from ....nodes.converge.playbook import plays
from ....nodes.converge.role_files import collections_path, plugins_path, role_path, role_plugins

FORMAT = 1
NAMESPACE = "gcluster-converge"
"""What signatures are for (ssh-keygen(1)): a key that signs anything else can't be lent to this."""

_COLLECTION = "ansible_collections/gcluster/cluster"
_NAMED = re.compile(r"gcluster\.cluster\.(\w+)")


class PoolBundle(msgspec.Struct, frozen=True, kw_only=True):
    """What the nodes of one pool fetch."""

    pool: str
    file: str
    """Name in the package mirror; it holds the hash, so an old and a new one lie side by side."""
    content: bytes
    steps: tuple[dict[str, Any], ...]
    """Key, digest, drain, pushed: in the order they run."""


def is_pushed(step: Step) -> bool:
    """Whether a step only ever comes over SSH: it needs a secret, and bundles hold none."""
    return bool(step.secrets)


def pool_bundles(
    compiled: CompiledCluster, pools: Iterable[str], secret_versions: Mapping[str, str]
) -> tuple[PoolBundle, ...]:
    """Return the bundles; the same cluster gives the same bytes, and no secret is in them."""
    alike = CompiledCluster(
        cluster=compiled.cluster,
        groups=tuple(msgspec.structs.replace(g, hosts=("all",)) for g in compiled.groups),
    )
    steps = pending_steps(alike, {}, secret_versions).steps
    return tuple(_bundle(pool, [s for s in steps if s.pool == pool]) for pool in sorted(pools))


def _bundle(pool: str, steps: list[PendingStep]) -> PoolBundle:
    pulled = [item for item in steps if not is_pushed(item.step)]
    record = {item.step.key: [_local(play) for play in plays(_only(item), {})] for item in pulled}
    files = {"plays.json": (msgspec.json.encode(record, order="sorted"), False)}
    collection = collections_path() / _COLLECTION
    for path in (collection / "galaxy.yml", *sorted((collection / "meta").glob("*"))):
        name = path.relative_to(collection)
        files[f"{_COLLECTION}/{name}"] = (path.read_bytes(), False)
    for role in _roles({item.step.role for item in pulled}):
        files |= files_below(role_path(role), f"{_COLLECTION}/roles/{role}")
        for plugin in role_plugins(role):
            content = (plugins_path() / plugin).read_bytes()
            files[f"{_COLLECTION}/plugins/{plugin}"] = (content, False)
    content = packed(files)
    digest = hashlib.sha256(content).hexdigest()
    return PoolBundle(
        pool=pool,
        file=f"bundle-{digest}.tar.gz",
        content=content,
        steps=tuple(
            {
                "key": item.step.key,
                "digest": item.digest,
                "drain": item.step.needs_drain,
                "pushed": is_pushed(item.step),
            }
            for item in steps
        ),
    )


def _only(item: PendingStep) -> Pending:
    return Pending(steps=(item,))


def _local(play: dict[str, Any]) -> dict[str, Any]:
    """Return a play for the node itself, which runs it as root."""
    return play | {"become": False}


def _roles(named: set[str]) -> list[str]:
    """Return the roles and all that they name themselves."""
    found: set[str] = set()
    ahead = set(named)
    while ahead:
        role = ahead.pop()
        found.add(role)
        for path in role_path(role).rglob("*.yml"):
            ahead |= set(_NAMED.findall(path.read_text(encoding="utf-8"))) - found
    return sorted(role for role in found if role_path(role).is_dir())


def manifest(  # what a manifest has
    cluster: str,
    bundle: PoolBundle,
    runtime: tuple[str, str],
    serial: int,
    max_failed: int,
) -> str:
    """Return the text that is signed.

    Args:
        cluster: its name.
        bundle: of the pool.
        runtime: file in the package mirror and SHA-256 of the Ansible archive.
        serial: counts what was published; a node takes no smaller one than it has seen.
        max_failed: nodes that may fail before no other is drained.
    """
    document = {
        "format": FORMAT,
        "cluster": cluster,
        "pool": bundle.pool,
        "serial": serial,
        "max_failed": max_failed,
        "bundle": {
            "file": bundle.file,
            "sha256": bundle.file.removeprefix("bundle-").removesuffix(".tar.gz"),
        },
        "runtime": {"file": runtime[0], "sha256": runtime[1]},
        "steps": bundle.steps,
    }
    return msgspec.json.encode(document, order="sorted").decode()


def signed(text: str, key_file: Path) -> bytes:
    """Return the manifest with its signature, as one file that is whole or not there.

    Raises:
        LifecycleError: as `ssh_signature`.
    """
    signature = ssh_signature(text, key_file, NAMESPACE)
    return msgspec.json.encode({"manifest": text, "signature": signature})


def ssh_signature(text: str, key_file: Path, namespace: str) -> str:
    """Return the signature of a text for one purpose, as `ssh-keygen -Y verify` takes it.

    Raises:
        LifecycleError: ssh-keygen is missing or refuses the key (GC922).
    """
    words = ["ssh-keygen", "-Y", "sign", "-q", "-n", namespace, "-f", str(key_file)]
    try:
        done = subprocess.run(words, input=text, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise failure(
            "GC922",
            "nothing can be signed: ssh-keygen is not installed",
            hint="sudo apt-get install -y openssh-client",
        ) from None
    if done.returncode:
        what = namespace.removeprefix("gcluster-")
        raise failure("GC922", f"ssh-keygen signs nothing for {what}", detail=done.stderr.strip())
    return done.stdout


KEY_SECRET = "converge-key"  # noqa: S105  # the secret's name
"""The private key, in the cluster's vault; it never leaves the control machine."""


def signing_key() -> bytes:
    """Return a new Ed25519 key in OpenSSH's format; it is never written to a disk."""
    key = Ed25519PrivateKey.generate()
    return key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())


def signers(key: bytes, signer: str, namespace: str = NAMESPACE) -> bytes:
    """Return the allowed_signers file of a key, see ssh-keygen(1): this key, for this alone."""
    public = load_ssh_private_key(key, password=None).public_key()
    line = public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return f'{signer} namespaces="{namespace}" {line}\n'.encode()


_NOT_CARRIED = frozenset({"__pycache__"})
_NOT_PORTABLE = frozenset({".pyc", ".so", ".pyd"})
"""Compiled for this machine's Python; these packages also have pure Python versions."""


def files_below(root: Path, at: str) -> dict[str, tuple[bytes, bool]]:
    """Return name in the archive -> (content, whether it is a program) of all files of a folder."""
    found = {}
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if path.is_dir() or path.suffix in _NOT_PORTABLE or _NOT_CARRIED & set(relative.parts):
            continue
        found[f"{at}/{relative}"] = (path.read_bytes(), bool(path.stat().st_mode & 0o100))
    return found


def packed(files: Mapping[str, tuple[bytes, bool]]) -> bytes:
    """Return a tar.gz of the files, ordered by name, without times or owners."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in (*_folders(files), *sorted(files)):
            entry = tarfile.TarInfo(name)
            if name in files:
                content, program = files[name]
                entry.size, entry.mode = len(content), 0o755 if program else 0o644
                tar.addfile(entry, io.BytesIO(content))
            else:
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(entry)
    squeezed = io.BytesIO()
    with gzip.GzipFile(fileobj=squeezed, mode="wb", mtime=0) as out:
        out.write(plain.getvalue())
    return squeezed.getvalue()


def _folders(files: Iterable[str]) -> list[str]:
    """Return the folders of the files, parents first."""
    found = set()
    for name in files:
        parts = name.split("/")[:-1]
        found |= {"/".join(parts[: end + 1]) for end in range(len(parts))}
    return sorted(found)


_PACKAGES: Mapping[str, str] = {
    "ansible": "ansible-core",
    "jinja2": "Jinja2",
    "markupsafe": "MarkupSafe",
    "packaging": "packaging",
    "yaml": "PyYAML",
}
"""What `ansible-playbook` imports -> its distribution. `cryptography` is for its vault alone."""

_RECIPE = 2
"""Raise it when this module packs otherwise."""


def runtime(cache: Path) -> bytes:
    """Return the archive; it is made once for each set of versions and kept in `cache`."""
    named = " ".join(f"{name}={version(name)}" for name in _PACKAGES.values())
    key = hashlib.sha256(f"{_RECIPE} {named}".encode()).hexdigest()[:16]
    kept = cache / f"ansible-{key}.tar.gz"
    if kept.exists():
        return kept.read_bytes()
    files: dict[str, tuple[bytes, bool]] = {}
    for package, name in _PACKAGES.items():
        files |= files_below(_folder(package), package)
        # Ansible reads versions through importlib.metadata, which searches there.
        about = (distribution(name).read_text("METADATA") or "").encode()
        folder = f"{name.replace('-', '_').lower()}-{version(name)}.dist-info"
        files[f"{folder}/METADATA"] = (about, False)
    content = packed(files)
    half = kept.with_suffix(".new")
    half.write_bytes(content)
    half.replace(kept)
    return content


def _folder(package: str) -> Path:
    found = find_spec(package)
    if found is None or found.origin is None:
        raise RuntimeError(f"{package} is not installed next to gcluster")
    return Path(found.origin).parent
