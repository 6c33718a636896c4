"""How a pool's machines start and whether they may be restarted, and how their GPUs are set."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from .noun import Noun, updates
from .units import ByteSize


class Boot(Noun, frozen=True):
    """The kernel's parameters. They hold from the next start on, and nothing restarts unasked."""

    UPDATES: ClassVar = updates(none="reboot", rolling="parameters hugepages")

    parameters: Annotated[
        list[Annotated[str, Meta(pattern=r"^[^\s\"'\\$`]+$(?!\n)", examples=["pci=realloc=off"])]],
        Meta(description="Kernel parameters beside the distribution's and the GPUs' own."),
    ] = field(default_factory=list)
    hugepages: Annotated[
        ByteSize | None,
        Meta(description="Memory of a node kept in pages of 1 GiB; default: none."),
    ] = None
    reboot: Annotated[
        Literal["never", "when-drained"],
        Meta(
            description="Whether `up` may restart a node, without jobs, whose kernel or parameters "
            "are not the running ones. Otherwise it says so and stops there."
        ),
    ] = "never"


class GpuSettings(Noun, frozen=True):
    """How NVIDIA's GPUs of a pool are set, and how their driver is built."""

    UPDATES: ClassVar = updates(rolling="mig ecc modules peer_memory")

    mig: Annotated[
        Literal["unmanaged", "enabled", "disabled"], Meta(description="MIG mode of all GPUs.")
    ] = "unmanaged"
    ecc: Annotated[
        Literal["unmanaged", "enabled", "disabled"], Meta(description="ECC of the GPUs' memory.")
    ] = "unmanaged"
    modules: Annotated[
        Literal["dkms", "precompiled"],
        Meta(description="Open kernel modules: built on the node, or by the distribution."),
    ] = "dkms"
    peer_memory: Annotated[
        Literal["dma-buf", "nvidia-peermem"],
        Meta(description="How network adapters reach the GPUs' memory."),
    ] = "dma-buf"
