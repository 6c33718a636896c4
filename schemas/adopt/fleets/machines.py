"""Machines by requirement, as tasks and fleets request them: H100:8."""

from __future__ import annotations

import re
from typing import Any

from ..draft import Draft, gpu_machine
from ..source import Source

PROVIDERS = frozenset({"aws", "gcp", "azure", "oci"})
_GPU = re.compile(r"^(?:nvidia:|amd:)?([A-Za-z][\w-]*)(?::\d+(?:\.\.)?\d*GB)?(?::(\d+))?$")
_SUFFIX = re.compile(r"-(80GB|SXM|40GB|141GB|MEGA)$", re.IGNORECASE)


def cloud_site(draft: Draft, provider: str, region: str, zone: str) -> str:
    """Begin the site of a task or fleet, and its controller, of which neither says anything.

    Args:
        draft: it is written into.
        provider: as specs call it, "" where nothing says it.
        region: "" where nothing says it.
        zone: as above.

    Returns:
        The site's name.
    """
    name = provider or "cloud"
    site: dict[str, Any] = {}
    if provider:
        site["provider"] = provider
    else:
        draft.leave("the cloud", "not specified: provider of the site", "unfinished")
    if region:
        site["region"] = region
    else:
        draft.leave("the region", "not specified: region of the site", "unfinished")
    if zone and provider == "gcp":
        site["zone"] = zone
    elif zone:
        why = "zones are written by id: zone_id of the site" if provider == "aws" else "zone"
        draft.leave(f"zone {zone}", why)
    draft.sites[name] = site
    tunnel = {"aws": "instance-connect", "gcp": "iap"}.get(provider)
    if tunnel:
        draft.tunnel(name, tunnel)
    draft.pools["head"] = {"site": name, "role": "controller"}
    why = "Slurm is written, which needs a controller: machine of pool head"
    draft.leave("a scheduler", why, "unfinished")
    return name


def machine_by_gpu(wanted: str, provider: str) -> str:
    """Return the machine type of a cloud with these GPUs; "" where there is none, or no one."""
    found = _GPU.match(wanted.strip())
    if found is None or not provider:
        return ""
    model = _SUFFIX.sub("", found[1]).upper()
    known = gpu_machine(model, int(found[2] or 1), provider)
    return known.name if known is not None else ""


def bucket_storage(mounts: Source, site: str, draft: Draft) -> None:
    """Write the buckets of a task as storage; what is no bucket is listed."""
    for mount in mounts.names():
        part = mounts.part(mount)
        url = part.text("source") or mounts.text(mount)
        if not re.match(r"(s3|gs|az|oci)://", url):
            mounts.leave("files of this machine are not copied", mount)
            continue
        path = mount if mount.startswith("/") else f"/{mount.removeprefix('~/')}"
        name = draft.fit(path.strip("/").replace("/", "-") or "data", "storage", draft.storage)
        draft.storage[name] = {"type": "object", "mount": path, "bucket": url, "site": site}
        mode = part.text("mode").upper() or ("COPY" if not part.names() else "MOUNT")
        if mode == "COPY":
            draft.storage[name]["read_only"] = True
            draft.leave(f"{mount}: COPY", "it is mounted, read-only, and not copied", "replaced")
        elif mode == "MOUNT_CACHED":
            draft.leave(f"{mount}: MOUNT_CACHED", "cache: of the storage, with its size", "lost")
        part.take("name")
        part.take("store")
