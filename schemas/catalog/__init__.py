"""The catalog: machine types, fabric classes, providers, artefact sources, add-ons; each dated.

Files under machines/<where>/, fabrics/, providers/, sources/ and addons/ come with gcluster, one
entry a file, named after it; a user's own files add to them or override them.
"""

from .load import Catalog, CatalogError, CatalogFile, load_catalog
from .model.fabric import Calibration, ExtraNetworks, Fabric, Floor
from .model.machine import (
    Citation,
    Cpu,
    Gpu,
    Machine,
    Market,
    Nic,
    Nvlink,
    Placement,
    Price,
    Quota,
)
from .model.provider import (
    CapacityBlock,
    FileServiceOffer,
    LustreOffer,
    ProviderFacts,
    Region,
    ReservedNetwork,
)
from .model.source import Addon, ArtefactSource, File, Repository

__all__ = [
    "Addon",
    "ArtefactSource",
    "Calibration",
    "CapacityBlock",
    "Catalog",
    "CatalogError",
    "CatalogFile",
    "Citation",
    "Cpu",
    "ExtraNetworks",
    "Fabric",
    "File",
    "FileServiceOffer",
    "Floor",
    "Gpu",
    "LustreOffer",
    "Machine",
    "Market",
    "Nic",
    "Nvlink",
    "Placement",
    "Price",
    "ProviderFacts",
    "Quota",
    "Region",
    "Repository",
    "ReservedNetwork",
    "load_catalog",
]
