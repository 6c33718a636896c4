"""The gate at the end of `up`: a multi-node AllReduce."""

from typing import Annotated, ClassVar

from msgspec import Meta

from .noun import Noun, updates
from .units import BandwidthFloor
from .words import ImageReference


class AllReduce(Noun, frozen=True):
    """What the AllReduce runs and what it must reach."""

    UPDATES: ClassVar = updates(none="sizes iterations floor image")

    sizes: Annotated[
        str,
        Meta(
            pattern=r"^[0-9]{1,15} ?(B|KiB|MiB|GiB)\.\.[0-9]{1,15} ?(B|KiB|MiB|GiB)$(?!\n)",
            description="Message sizes, smallest..largest; each is twice the one before it.",
            examples=["8B..16MiB", "8B..8GiB"],
        ),
    ] = "8B..16MiB"
    iterations: Annotated[int, Meta(ge=1, le=1000, description="Timed runs per size.")] = 5
    floor: Annotated[
        BandwidthFloor | None,
        Meta(
            description="Least bus bandwidth at the largest size; auto: the fabric class's for "
            "this many nodes; default: none is asked."
        ),
    ] = None
    image: Annotated[
        ImageReference | None,
        Meta(
            description="Image of the ranks under a control plane of a cloud, whose nodes have no "
            "programs of ours: with sshd, Open MPI's mpirun and nccl-tests.",
            examples=["registry.example.edu/allreduce:1.4"],
        ),
    ] = None


class Smoke(Noun, frozen=True):
    """Tests that the finished cluster must pass."""

    UPDATES: ClassVar = updates(none="allreduce")

    allreduce: Annotated[AllReduce, Meta(description="AllReduce over all compute nodes.")] = (
        AllReduce()
    )
