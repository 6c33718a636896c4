"""The key that logs in to a cluster's nodes: made once on this machine, or the site's own."""

from __future__ import annotations

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from . import atomic
from .provider import provider_error


def ensure_client_key(directory: Path) -> Path:
    """Return the cluster's private key on this machine; make it the first time, 0600.

    Raises:
        ProviderError: ssh-keygen isn't installed or failed.
    """
    private = directory / "id_ed25519"
    with atomic.locked(directory / ".key.lock"):
        if not private.exists():
            directory.chmod(0o700)
            with TemporaryDirectory(dir=directory) as scratch:
                made = Path(scratch) / "key"
                _keygen(made)
                made.with_suffix(".pub").replace(public_key_path(private))
                made.replace(private)
    return private


def write_client_key(directory: Path, key: bytes) -> Path:
    """Lay out a private key that was made before, with its public half; return the private one.

    Raises:
        ProviderError: ssh-keygen isn't installed, or can't read the key.
    """
    private = directory / "id_ed25519"
    with atomic.locked(directory / ".key.lock"):
        if private.exists() and private.read_bytes() == key and public_key_path(private).exists():
            return private
        directory.chmod(0o700)
        atomic.write(private, key)
        public = _ssh_keygen(["-y", "-f", str(private)])
        atomic.write(public_key_path(private), public.encode())
    return private


def public_key_path(private: Path) -> Path:
    """Return where the public key of `private` is."""
    return private.with_name(private.name + ".pub")


def _keygen(target: Path) -> None:
    _ssh_keygen(["-q", "-t", "ed25519", "-N", "", "-C", "gcluster", "-f", str(target)])


def _ssh_keygen(options: list[str]) -> str:
    try:
        return subprocess.run(
            ["ssh-keygen", *options], check=True, capture_output=True, text=True, timeout=30
        ).stdout
    except FileNotFoundError:
        raise provider_error(
            "GC910", "ssh-keygen is not installed", hint="sudo apt-get install -y openssh-client"
        ) from None
    except subprocess.CalledProcessError as error:
        raise provider_error("GC911", f"ssh-keygen failed: {error.stderr.strip()}") from None


def public_text(private: Path) -> str:
    """Return the public key of `private`, which nodes let in.

    Raises:
        ProviderError: GC968, it is not beside the private one.
    """
    public = public_key_path(private)
    try:
        return public.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise provider_error(
            "GC968",
            f"the public key {public} can't be read: {error.strerror}",
            hint=f"ssh-keygen -y -f {private} > {public}",
        ) from None
