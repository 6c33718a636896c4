"""Reads the nodes back: addresses, host keys from their consoles, and topology."""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import msgspec

from ...inventory.hosts import Placement
from ..pulumi.hosts import Machine, Marked
from ..pulumi.names import POOL
from .api import NOT_FOUND, Answer, Api, OciError
from .plan.types import SitePlan

ENDED = {"TERMINATING", "TERMINATED"}
"""States of an instance that no longer exists; OCI lists it for a while."""
_AT_ONCE = 8
"""Concurrent requests: the rate of a tenancy is shared by all its users."""
_CAPTURE_S = 120.0
_CONSOLE_BYTES = 1_000_000
"""Most that a console history has ("up to a megabyte", CaptureConsoleHistory)."""
NO_ADDRESSES = ("", "")


class Source(Answer, frozen=True):
    """What an instance booted from."""

    image_id: str = ""


class Instance(Answer, Marked, frozen=True):
    """A machine, from ListInstances."""

    id: str
    lifecycle_state: str
    display_name: str = ""
    shape: str = ""
    availability_domain: str = ""
    freeform_tags: dict[str, str] = msgspec.field(default_factory=dict)
    source_details: Source = Source()

    def tag(self, key: str) -> str:
        """Return the value of a free-form tag."""
        return self.freeform_tags.get(key, "")

    @property
    def is_alive(self) -> bool:
        """Whether it is there."""
        return self.lifecycle_state not in ENDED


class _Attachment(Answer, frozen=True):
    lifecycle_state: str = ""
    vnic_id: str = ""


class _Vnic(Answer, frozen=True):
    is_primary: bool = False
    private_ip: str = ""
    public_ip: str | None = None


class _History(Answer, frozen=True):
    id: str
    lifecycle_state: str = ""


class _Machine(Answer, frozen=True):
    """A physical host of dedicated capacity."""

    instance_id: str | None = None
    local_block_id: str | None = None
    gpu_memory_fabric_id: str | None = None


class _Machines(Answer, frozen=True):
    items: tuple[_Machine, ...] = ()


def instances(
    api: Api, plan: SitePlan, *, pool: str = "", ended: bool = False
) -> tuple[Instance, ...]:
    """Return the machines of a site, or of one of its pools, by name.

    ListInstances doesn't filter by tag: all of the compartment are read. `ended` adds those that
    have ended and are still listed.
    """
    wanted = plan.labels.found_by() | ({POOL: pool} if pool else {})
    pages = api.pages(tuple[Instance, ...], "compute", "list_instances", plan.compartment)
    found = (machine for page in pages for machine in page)
    ours = (m for m in found if wanted.items() <= m.freeform_tags.items())
    return tuple(sorted((m for m in ours if ended or m.is_alive), key=lambda m: (m.host, m.id)))


def addresses(api: Api, plan: SitePlan, machines: Iterable[Instance]) -> dict[str, tuple[str, str]]:
    """Return instance -> its private and its public address, "" where it has none."""

    def of(machine: Instance) -> tuple[str, str]:
        attached = api.call(
            tuple[_Attachment, ...],
            "compute",
            "list_vnic_attachments",
            plan.compartment,
            instance_id=machine.id,
        )
        for attachment in attached:
            if attachment.lifecycle_state == "ATTACHED":
                vnic = api.call(_Vnic, "network", "get_vnic", attachment.vnic_id)
                if vnic.is_primary:
                    return vnic.private_ip, vnic.public_ip or ""
        return NO_ADDRESSES

    requested = list(machines)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = pool.map(of, requested)
        return {machine.id: found for machine, found in zip(requested, answers, strict=True)}


def read_console(api: Api, instance: str, *, pause_s: float = 2.0) -> str:
    """Return what a console shows; "" also where it can't be read yet.

    OCI captures the console first ("console history"), and the capture is removed again.
    """
    try:
        capture = api.call(_History, "compute", "capture_console_history", {"instanceId": instance})
    except OciError as error:
        if error.code in {NOT_FOUND, "IncorrectState", "Conflict"}:
            return ""
        raise
    try:
        return _captured(api, capture, pause_s)
    finally:
        api.call(object, "compute", "delete_console_history", capture.id)


def _captured(api: Api, capture: _History, pause_s: float) -> str:
    until = time.monotonic() + _CAPTURE_S
    while capture.lifecycle_state not in {"SUCCEEDED", "FAILED"} and time.monotonic() < until:
        time.sleep(pause_s)
        capture = api.call(_History, "compute", "get_console_history", capture.id)
    if capture.lifecycle_state != "SUCCEEDED":
        return ""
    said = api.call(
        object, "compute", "get_console_history_content", capture.id, length=_CONSOLE_BYTES
    )
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)


def places(api: Api, plan: SitePlan) -> dict[str, Placement]:
    """Return instance -> topology: its NVLink domain and local block of the RDMA network.

    {} where OCI doesn't return it: only owners of dedicated capacity see hosts.
    """
    try:
        pages = list(api.pages(_Machines, "compute", "list_compute_hosts", plan.compartment))
    except OciError:
        return {}
    return {
        machine.instance_id: Placement(
            block=machine.gpu_memory_fabric_id, leaf=machine.local_block_id
        )
        for page in pages
        for machine in page.items
        if machine.instance_id
    }


def seen(
    plan: SitePlan, machine: Instance, addresses: tuple[str, str], place: Placement | None = None
) -> Machine:
    """Return a machine in the form that hosts are created from.

    Args:
        plan: the site.
        machine: one of its machines.
        addresses: its private and its public one.
        place: its topology; None: unknown.
    """
    pool = plan.pools_by_name.get(machine.pool)
    return Machine(
        id=machine.id,
        host=machine.host,
        pool=machine.pool,
        user="" if pool is None else pool.image.user,
        address=addresses[0],
        public_address=addresses[1],
        placement=place or Placement(),
        image=machine.source_details.image_id or None,
    )
