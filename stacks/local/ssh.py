"""How a new node is told of the cluster's client key, and tells its own host key."""

from __future__ import annotations

from pathlib import Path

from ...inventory.hosts import SshTarget
from ..io.ssh import public_key_path
from ..provider import ProviderError
from .engine import Engine

CLOUD_USER = "debian"
"""Login user of nodes that start as a cloud's do; root is refused there."""
BOOT_LIMIT_S = 60
"""How long a node may take from its start until sshd answers; seen: 1 s alone, 20 s among 32."""

_LISTENS = rf"""
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
_WELCOME = f"""
umask 077
mkdir -p /root/.ssh && cat > /root/.ssh/authorized_keys.new || exit 1
[ -s /root/.ssh/authorized_keys.new ] || exit 1  # who wrote it was killed
mv /root/.ssh/authorized_keys.new /root/.ssh/authorized_keys || exit 1
{_LISTENS}"""


def first_contact(engine: Engine, container: str) -> tuple[str, ...]:
    """Wait for a node that starts as a cloud's does, and return its host keys; () for none.

    Nobody is let in: that is cloud-init's. The engine's exec stands for the cloud's console.
    """
    try:
        told = engine.inside(container, "/bin/sh", "-c", _LISTENS, limit_s=BOOT_LIMIT_S * 2)
    except ProviderError:
        return ()
    return tuple(" ".join(line.split()[:2]) for line in told.splitlines() if line.strip())


def welcome(engine: Engine, container: str, private: Path) -> tuple[str, ...]:
    """Let the cluster's key into a node, wait for its sshd, and return the node's host keys.

    One exec through the container engine does it all: it is the authenticated channel over which
    the host key that the node made for itself is read.

    Raises:
        ProviderError: sshd didn't answer in time, or the node stopped.
    """
    answer = engine.inside(
        *(container, "/bin/sh", "-c", _WELCOME),
        stdin=public_key_path(private).read_text(),
        limit_s=BOOT_LIMIT_S * 2,
    )
    return tuple(" ".join(line.split()[:2]) for line in answer.splitlines() if line.strip())


def target(private: Path, host_keys: tuple[str, ...]) -> SshTarget:
    """Return how SSH reaches a node."""
    return SshTarget(user="root", key_file=str(private), host_keys=host_keys)
