"""What is closed on the nodes: SSH, the ports between planes, updates that come by themselves."""

from typing import Annotated, ClassVar

from msgspec import Meta, field

from .noun import Noun, updates
from .words import Cidr


class Hardening(Noun, frozen=True):
    """Hardening of every node. Rules stay only if gcluster can still log in with them."""

    UPDATES: ClassVar = updates(in_place="management nodes fabric storage audit")

    management: Annotated[
        list[Cidr],
        Meta(
            description="Networks that people and gcluster log in from. With them the nodes get a "
            "firewall that drops whatever no plane allows; without, none.",
            examples=[["192.0.2.0/24"]],
        ),
    ] = field(default_factory=list)
    nodes: Annotated[
        list[Cidr],
        Meta(description="Networks of the nodes: Slurm, MPI, NCCL; default: those of the sites."),
    ] = field(default_factory=list)
    fabric: Annotated[
        list[Cidr], Meta(description="Networks of the fabric; everything may come in from them.")
    ] = field(default_factory=list)
    storage: Annotated[
        list[Cidr], Meta(description="Networks of the storage servers: Lustre, NFS.")
    ] = field(default_factory=list)
    audit: Annotated[
        bool, Meta(description="Run auditd with rules for accounts, keys, modules and mounts.")
    ] = True
