"""The catalog: machine types, fabric classes, providers, artefact sources, add-ons; each dated.

Files under machines/<where>/, fabrics/, providers/, sources/ and addons/ come with gcluster, one
entry a file, named after it; a user's own files add to them or override them.
"""

from .fabric import Calibration, ExtraNetworks, Fabric, Floor
from .load import Catalog, CatalogError, CatalogFile, load_catalog
from .machine import (
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
from .provider import (
    CapacityBlock,
    LustreOffer,
    ProviderFacts,
    Region,
    ReservedNetwork,
)
from .source import Addon, ArtefactSource, File, Repository

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
