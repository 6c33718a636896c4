"""Azure's names and limits (facts.yaml): images, roles, limits of scale sets, our own choices."""

from __future__ import annotations

from functools import cache

import msgspec

from ...pulumi.data import read_data


class ImageFact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A vendor's image of a distribution."""

    distribution: str
    urn: str
    """PUBLISHER:OFFER:SKU:VERSION."""
    gpu: str = ""
    """Vendor of the GPUs whose drivers are in it; "": none."""
    cpu: str = "x86_64"
    """Architecture that it runs on."""


class ScaleSetMachines(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Most machines of a scale set over several placement groups."""

    platform: int
    """From a marketplace or gallery image."""
    managed: int
    """From a managed image."""


class Maintenance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When Azure may maintain a file system."""

    day: str
    time: str
    """HH:MM, UTC."""


class Facts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole of facts.yaml."""

    images: tuple[ImageFact, ...]
    roles: dict[str, str]
    """Our short name -> id of the built-in role."""
    scale_set_machines: ScaleSetMachines
    single_placement_machines: int
    """Most machines of a scale set that is one placement group, where InfiniBand works."""
    machine: str
    distribution: str
    user: str
    maintenance: Maintenance
    boot_disk_gib: int
    aks_system_nodes: int

    def image(self, distribution: str, gpu: str, cpu: str) -> str | None:
        """Return the image's URN; None where the vendor has none."""
        wanted = (distribution, gpu, cpu)
        found = (i.urn for i in self.images if (i.distribution, i.gpu, i.cpu) == wanted)
        return next(found, None)


@cache
def facts() -> Facts:
    """Return the facts, read once."""
    return read_data("azure", "facts", Facts)
