"""The first start of a node whose image is `cloud-like`: the seed that its cloud-init reads.

It is the user data that machines of clouds get, through cloud-init's own data source for machines
without a cloud (NoCloud), with stages that take their time.
"""

from __future__ import annotations

import json
from pathlib import Path

from ..io.ssh import cloud_config, public_text
from ..provider import SiteContext
from . import records
from .ssh import CLOUD_USER

SEED = "/var/lib/cloud/seed/nocloud"
"""Where cloud-init looks for its seed (cloud-init's documentation, "NoCloud")."""
_BEFORE_USERS_S = 3
_LAST_STAGE_S = 15


def seed_flags(context: SiteContext, private_key: Path, node: str) -> tuple[str, ...]:
    """Write a node's seed and return what its container is started with."""
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
