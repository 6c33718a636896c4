"""Machines that are alike."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from gcluster.schemas.spec.noun import Name, Noun
from gcluster.schemas.spec.units import ByteSize
from gcluster.schemas.spec.words import Bastion, HostKey, LoginUser

PoolRole: TypeAlias = Literal["compute", "controller", "login"]

HostRange: TypeAlias = Annotated[
    str,
    Meta(
        min_length=1,
        description="A host name or a Slurm host range.",
        examples=["head01", "gpu[001-064]", "rack[1-2]n[01-16,20]"],
    ),
]


class HostEntry(Noun, frozen=True):
    """Hosts that need more said than their name; every key besides `name` overrides the site's."""

    name: HostRange
    address: Annotated[
        str | None,
        Meta(
            description="Address the other nodes and SSH use; a range of the same length as name.",
            examples=["10.0.1.[1-64]"],
        ),
    ] = None
    user: Annotated[LoginUser | None, Meta(description="Login user.")] = None
    port: Annotated[
        Annotated[int, Meta(ge=1, le=65535)] | None, Meta(description="TCP port of sshd.")
    ] = None
    bastion: Annotated[Bastion | None, Meta(description="[user@]host[:port] to jump through.")] = (
        None
    )
    host_key: Annotated[
        HostKey | None,
        Meta(description="Public host key to pin for one host."),
    ] = None
    block: Annotated[
        str | None, Meta(description="Scalable unit or NVLink domain the hosts stand in.")
    ] = None
    leaf: Annotated[str | None, Meta(description="Leaf switch group the hosts hang on.")] = None


class NodeCpu(Noun, frozen=True):
    """The processors of one node, as `lscpu` says them."""

    sockets: Annotated[int, Meta(ge=1, description="Sockets.")]
    cores: Annotated[int, Meta(ge=1, description="Cores of one socket.")]
    threads_per_core: Annotated[int, Meta(ge=1, description="Threads of one core.")] = 1


class Pool(Noun, frozen=True):
    """Machines of one site that are alike and are run alike."""

    site: Annotated[Name, Meta(description="Name of the site they come from.")]
    role: Annotated[
        PoolRole,
        Meta(description="controller runs the scheduler, login is for people, compute works."),
    ] = "compute"
    machine: Annotated[
        str | None,
        Meta(
            description="Machine type of the catalog; may be left out for controllers and logins."
        ),
    ] = None
    hosts: Annotated[
        HostRange | list[HostRange | HostEntry] | None,
        Meta(description="Existing hosts (bare metal): a range, or a list of ranges and entries."),
    ] = None
    count: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="How many machines to make (sites that make machines)."),
    ] = None
    quorum: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Go live with this many; the rest is named and repaired later."),
    ] = None
    cpu: Annotated[
        NodeCpu | None,
        Meta(
            description="Processors of one node, where the catalog doesn't know them (an HGX board "
            "comes in servers of many makers) or these differ. Without any Slurm counts one CPU."
        ),
    ] = None
    memory: Annotated[
        ByteSize | None,
        Meta(description="Memory of one node, where the catalog doesn't know it or this differs."),
    ] = None
