"""OpenPGP for bundles, by gpg: the key that signs one, and keys that vouch for its content."""

from __future__ import annotations

import os
import subprocess
import tempfile
import urllib.error
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...stacks.io import atomic
from ...stacks.io.https import opened
from ..cluster.outcome import failure

_FETCH_TIMEOUT_S = 60


class BundleKey:
    """The key that signs the bundles of one cluster: made once, kept on the maker's machine."""

    def __init__(self, path: Path, owner: str) -> None:
        """Read the key at `path` (0600), made where it is missing; `owner` is written into it."""
        if not path.exists():
            with _home() as gpg:
                gpg("--quick-generate-key", f"gcluster bundle {owner}", "ed25519", "sign", "never")
                secret = gpg("--armor", "--export-secret-keys")
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            atomic.write(path, secret)
            path.chmod(0o600)
        self._path = path
        with _home() as gpg:
            gpg("--import", str(path))
            self.public = gpg("--armor", "--export").decode()
            self.fingerprint = _fingerprints(gpg("--with-colons", "--list-keys"))[0]

    def sign(self, content: bytes, *, detached: bool) -> bytes:
        """Return the clear-signed text, or only its signature."""
        with _home() as gpg:
            gpg("--import", str(self._path))
            kind = ["--armor", "--detach-sign"] if detached else ["--clearsign"]
            return gpg("--digest-algo", "SHA512", *kind, stdin=content)


def signed_by(key: str, fingerprint: str, signed: Path, content: Path | None = None) -> str:
    """Return why a signature isn't good by the key with this fingerprint; "" when it is.

    Args:
        key: the public key, as text.
        fingerprint: of the key that must have signed.
        signed: a clear-signed text, or the detached signature of `content`.
        content: what a detached signature is about.
    """
    with _home() as gpg:
        try:
            gpg("--import", stdin=key.encode())
            known = _fingerprints(gpg("--with-colons", "--list-keys"))
        except GpgError as error:
            return f"its key can't be read: {error}"
        if known != [fingerprint]:
            return f"its key is {', '.join(known)}, not {fingerprint}"
        try:
            gpg_status = gpg(
                "--status-fd",
                "1",
                "--output",
                "-",
                "--verify",
                str(signed),
                *([str(content)] if content else []),
            ).decode(errors="replace")
        except GpgError as error:
            return str(error)
        good = [line for line in gpg_status.splitlines() if line.startswith("[GNUPG:] VALIDSIG ")]
        return "" if any(line.split()[-1] == fingerprint for line in good) else "no good signature"


def exported(repository: dict[str, Any], folder: Path) -> Path:
    """Return a keyring with the pinned key of a repository and no other.

    Raises:
        LifecycleError: GC939: the key is away, or another one.
    """
    name, wanted = repository["name"], repository["key_fingerprint"]
    if not wanted:
        raise failure(
            "GC939",
            f"{name}: no fingerprint is known of its signing key",
            hint=f"read it from the vendor, and write software.sources.{name}.key_fingerprint",
        )
    try:
        if repository.get("key"):
            offered = repository["key"].encode()
        else:
            with opened(repository["key_url"], timeout=_FETCH_TIMEOUT_S) as answer:
                offered = answer.read()
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise failure(
            "GC939", f"{name}: its key can't be read from {repository['key_url']}: {error}"
        ) from None
    with _home() as gpg:
        try:
            gpg("--import", stdin=offered)
            found = _fingerprints(gpg("--with-colons", "--list-keys"))
        except GpgError:
            found = []
        if wanted not in found:
            what = ", ".join(found) or "no key"
            raise failure("GC939", f"{name}: its key is {what}, not {wanted}: it was not trusted")
        folder.mkdir(parents=True, exist_ok=True)
        keyring = folder / f"{name}.gpg"
        keyring.write_bytes(gpg("--export", wanted))
    return keyring


class GpgError(Exception):
    """gpg failed; carries its message."""


class _Gpg:
    def __init__(self, home: str) -> None:
        self._home = home

    def __call__(self, *arguments: str, stdin: bytes = b"") -> bytes:
        words = ("gpg", "--batch", "--yes", "--quiet", "--pinentry-mode=loopback", "--passphrase=")
        try:
            done = subprocess.run(
                [*words, *arguments],
                input=stdin,
                capture_output=True,
                check=False,
                env={**os.environ, "GNUPGHOME": self._home, "LC_ALL": "C"},
            )
        except FileNotFoundError:
            raise failure(
                "GC939",
                "gpg is not installed: it signs and checks bundles",
                hint="sudo apt-get install -y gpg gpg-agent",
            ) from None
        if done.returncode != 0:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            raise GpgError(lines[-1].removeprefix("gpg: ") if lines else "gpg failed")
        return done.stdout


@contextmanager
def _home() -> Iterator[_Gpg]:
    """Yield gpg with a keyring of its own; its agent's socket needs a short path."""
    with tempfile.TemporaryDirectory(prefix="gcb.", dir="/tmp") as folder:
        try:
            yield _Gpg(folder)
        finally:
            subprocess.run(
                ["gpgconf", "--homedir", folder, "--kill", "all"], capture_output=True, check=False
            )


def _fingerprints(listed: bytes) -> list[str]:
    """Return the fingerprints of primary keys in gpg's --with-colons output."""
    found, primary = [], False
    for line in listed.decode().splitlines():
        fields = line.split(":")
        if fields[0] in {"pub", "sub"}:
            primary = fields[0] == "pub"
        elif fields[0] == "fpr" and primary:
            found.append(fields[9])
            primary = False
    return found
