"""What lists of nodes of provisioning tools have alike: hosts, and a head that serves them."""

from __future__ import annotations

from typing import Any

import msgspec

from ..draft import Draft

SITE = "here"


class ListedNode(msgspec.Struct, frozen=True):
    """A node of a list."""

    name: str
    address: str = ""

    @property
    def entry(self) -> Any:
        """The node as a pool lists it."""
        if not self.address:
            return self.name
        return {"name": self.name, "address": self.address}


def begin(draft: Draft, head: ListedNode | None, user: str) -> None:
    """Write the site and the head; what a list of nodes doesn't say is listed."""
    draft.sites[SITE] = {"provider": "bare-metal", "ssh": {"user": user}}
    draft.leave("how nodes are reached by SSH", f"not specified: {user} is written", "guess")
    entry: dict[str, Any] = {"site": SITE, "role": "controller"}
    if head is not None:
        entry["hosts"] = [head.entry]
    else:
        why = "Slurm's controller is not specified: --controller HOST"
        draft.leave("the controller", why, "unfinished")
    draft.pools["head"] = entry


def write_pool(draft: Draft, name: str, nodes: list[ListedNode], **more: Any) -> str:
    """Write a pool of listed nodes; return its name."""
    pool = draft.fit(name, "pool", draft.pools)
    cpu = {"cpu": {"architecture": "x86_64", **more["cpu"]}} if more.get("cpu") else {}
    if cpu:
        why = "not specified, x86_64 is written: aarch64 in machines.yaml where it is ARM"
        draft.leave(f"pool {pool}: architecture", why, "guess")
    draft.pools[pool] = {
        "site": SITE, "machine": draft.machine(f"{draft.name}-{pool}", ["bare-metal"], **cpu),
        "hosts": [node.entry for node in nodes], **more,
    }  # fmt: skip
    return pool
