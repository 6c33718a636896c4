"""Firmware of a pool's machines: who to ask, what is wanted, and the word that allows an update."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from .noun import Noun, updates
from .words import FilePath

Target = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$(?!\n)", examples=["NIC_0"])]
"""Id in the BMC's firmware inventory (Redfish UpdateService/FirmwareInventory)."""


class FirmwareWanted(Noun, frozen=True):
    """What one part must have, and where its image is."""

    UPDATES: ClassVar = updates(none="power_state", rolling="version image sha256")

    version: Annotated[str, Meta(min_length=1, description="As the BMC writes it.")]
    image: Annotated[
        str | None,
        Meta(description="Image: a file here, or a URL that the BMC reaches. Needed for updates."),
    ] = None
    sha256: Annotated[
        Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")] | None,
        Meta(description="Checksum of the image file; a file without it is refused."),
    ] = None
    power_state: Annotated[
        Literal["On", "Off", "any"], Meta(description="State the machine must be in for it.")
    ] = "On"


class Firmware(Noun, frozen=True):
    """Firmware through the BMC's Redfish service. Nothing is ever reset."""

    UPDATES: ClassVar = updates(none="bmc credentials certificates update", rolling="wanted")

    bmc: Annotated[
        str,
        Meta(
            pattern=r"^https://[^\s]+$(?!\n)",
            description="Redfish service of a node; {host} stands for the node's name.",
            examples=["https://{host}-bmc.example.edu"],
        ),
    ]
    credentials: Annotated[
        FilePath,
        Meta(description="File here with the BMC's user and password, on a line each."),
    ]
    certificates: Annotated[
        FilePath | None, Meta(description="File that vouches for the BMCs; default: the system's.")
    ] = None
    wanted: Annotated[
        dict[Target, FirmwareWanted], Meta(description="What parts must have; others are reported.")
    ] = field(default_factory=dict)
    update: Annotated[
        list[Target],
        Meta(description="Parts that `up` may update now, on drained nodes; default: none, ever."),
    ] = field(default_factory=list)
