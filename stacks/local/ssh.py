"""The first contact with a new node: how it gets the client key, and how its host key is read."""

from __future__ import annotations

import json
from pathlib import Path

from ...inventory.hosts import SshTarget
from ..io.ssh import cloud_config, public_key_path, public_text
from ..provider import ProviderError, SiteContext
from . import records
from .engine import Engine

CLOUD_USER = "debian"
"""Login user of nodes that start as a cloud's do; root is refused there."""
BOOT_LIMIT_S = 60
"""How long a node may take from its start until sshd answers; seen: 1 s alone, 20 s among 32."""

SEED = "/var/lib/cloud/seed/nocloud"
"""Where cloud-init searches for its seed (cloud-init's documentation, "NoCloud")."""
_BEFORE_USERS_S = 3
_LAST_STAGE_S = 15

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


def seed_flags(context: SiteContext, private_key: Path, node: str) -> tuple[str, ...]:
    """Write the seed of a `cloud-like` node and return what its container is started with.

    Its cloud-init reads it: the user data that machines of clouds get, through cloud-init's own
    data source for machines without a cloud (NoCloud), with stages that take their time.
    """
    folder = records.directory(context) / "seeds" / node
    folder.mkdir(parents=True, exist_ok=True)
    slow = {
        "bootcmd": [["sleep", str(_BEFORE_USERS_S)]],
        "runcmd": [["sleep", str(_LAST_STAGE_S)]],
    }
    data = cloud_config(user=CLOUD_USER, authorized_key=public_text(private_key), more=slow)
    (folder / "user-data").write_text(data, encoding="utf-8")
    meta = {"instance-id": f"{context.cluster_id}-{node}", "local-hostname": node}
    (folder / "meta-data").write_text(json.dumps(meta), encoding="utf-8")
    return (f"--volume={folder}:{SEED}:ro",)


def first_contact(engine: Engine, container: str) -> tuple[str, ...]:
    """Wait for a node that starts like a cloud's, and return its host keys; () for none.

    No key is authorized here: cloud-init does that. The engine's exec replaces the cloud's console.
    """
    try:
        answer = engine.inside(container, "/bin/sh", "-c", _LISTENS, limit_s=BOOT_LIMIT_S * 2)
    except ProviderError:
        return ()
    return tuple(" ".join(line.split()[:2]) for line in answer.splitlines() if line.strip())


def authorize_key(engine: Engine, container: str, private: Path) -> tuple[str, ...]:
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
