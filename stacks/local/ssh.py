"""The cluster's client key, and how a new node is told about it and tells its own host key."""

from __future__ import annotations

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from gcluster.inventory.hosts import SshTarget
from gcluster.stacks import atomic
from gcluster.stacks.provider import provider_error

if TYPE_CHECKING:
    from gcluster.stacks.local.engine import Engine

BOOT_LIMIT_S = 60
"""How long a node may take from its start until sshd answers; seen: 1 s alone, 20 s among 32."""

_WELCOME = rf"""
umask 077
mkdir -p /root/.ssh && cat > /root/.ssh/authorized_keys.new || exit 1
mv /root/.ssh/authorized_keys.new /root/.ssh/authorized_keys || exit 1
for attempt in $(seq {BOOT_LIMIT_S * 10}); do
  if [ -s /etc/ssh/ssh_host_ed25519_key.pub ] && timeout 2 bash -c \
      'exec 3<>/dev/tcp/127.0.0.1/22 && read -r -n 4 hello <&3 && [ "$hello" = SSH- ]' 2>/dev/null
  then exec cat /etc/ssh/ssh_host_ed25519_key.pub; fi
  sleep 0.1
done
systemctl list-units --failed --plain --no-legend >&2
echo "sshd did not answer within {BOOT_LIMIT_S} s" >&2
exit 75
"""


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
                made.with_suffix(".pub").replace(public_half(private))
                made.replace(private)
    return private


def public_half(private: Path) -> Path:
    """Return where the public key of `private` is."""
    return private.with_name(private.name + ".pub")


def _keygen(target: Path) -> None:
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "gcluster", "-f", str(target)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=30)
    except FileNotFoundError:
        raise provider_error(
            "GC910", "ssh-keygen is not installed", hint="sudo apt-get install -y openssh-client"
        ) from None
    except subprocess.CalledProcessError as error:
        raise provider_error("GC911", f"ssh-keygen failed: {error.stderr.strip()}") from None


def welcome(engine: Engine, container: str, private: Path) -> tuple[str, ...]:
    """Let the cluster's key into a node, wait for its sshd, and return the node's host keys.

    One exec through the container engine does it all: it is the authenticated channel over which
    the host key that the node made for itself is read.

    Raises:
        ProviderError: sshd didn't answer in time, or the node stopped.
    """
    told = engine.call(
        *("exec", "--interactive", container, "/bin/sh", "-c", _WELCOME),
        stdin=public_half(private).read_text(),
        timeout_s=BOOT_LIMIT_S * 3,
    )
    return tuple(" ".join(line.split()[:2]) for line in told.splitlines() if line.strip())


def target(private: Path, host_keys: tuple[str, ...]) -> SshTarget:
    """Return how SSH reaches a node."""
    return SshTarget(user="root", key_file=str(private), host_keys=host_keys)
