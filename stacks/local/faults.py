"""Faults that tests inject into nodes that come and go; none where GCLUSTER_LOCAL_FAULTS isn't set.

The variable names a JSON file with the fields of `Faults`. It is read at every call, so that a test
can change what goes wrong while a burst agent is at work. Nodes of the spec are never hit.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from ...schemas.derived.hostlist import expand
from ...schemas.structure.decoding import decode_json
from ..provider import provider_error

VARIABLE = "GCLUSTER_LOCAL_FAULTS"


class Faults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What goes wrong. Nodes are host ranges; "" is none."""

    refuse: str = ""
    """Nodes that there is no capacity for."""
    mask: dict[str, str] = {}
    """systemd unit -> nodes that boot without it: "ssh.service" never answers, "slurmd.service"
    never joins."""
    var_mib: dict[str, int] = {}
    """Nodes -> MiB that fit below their /var: a root disk that is too small. It is memory, so a
    node that is restarted has lost it."""
    before_s: float = 0.0
    """Seconds that each call takes longer before anything of it has happened."""
    after_s: float = 0.0
    """Seconds that each call is delayed after it has happened, before the caller gets its
    result.
    """
    usd_per_hour: float = 0.0
    """Price of a node."""

    def meet(self, node: str) -> None:
        """Refuse a node that there is no capacity for; raises ProviderError (GC913)."""
        if self.refuse and node in expand(self.refuse):
            raise provider_error("GC913", f"there is no capacity for {node} (an injected fault)")

    def init_words(self, node: str) -> tuple[str, ...]:
        """Return the arguments for a node's init, which reads them as a kernel's command line."""
        units = sorted(unit for unit, nodes in self.mask.items() if node in expand(nodes))
        return tuple(f"systemd.mask={unit}" for unit in units)

    def disk_flags(self, node: str) -> tuple[str, ...]:
        """Return what a node is started with for its /var to be small; the image's is copied."""
        sizes = [mib for nodes, mib in self.var_mib.items() if node in expand(nodes)]
        return tuple(f"--tmpfs=/var:rw,exec,mode=755,size={mib}m" for mib in sizes)

    def delay_before(self) -> None:
        """Delay by the fault's time before a call."""
        time.sleep(self.before_s)

    def delay_after(self) -> None:
        """Delay by the fault's time after a call."""
        time.sleep(self.after_s)


NONE = Faults()


def injected() -> Faults:
    """Return the faults of this moment.

    Raises:
        msgspec.MsgspecError: the file isn't of this form: a test that means nothing has to fail.
    """
    path = os.environ.get(VARIABLE)
    if not path or not Path(path).exists():
        return NONE
    return decode_json(Path(path).read_bytes(), Faults)
