"""The catalog: machine types as data, each number with its source and date.

Files under machines/ come with gcluster; a user's own file adds to them or overrides them.
"""

from gcluster.schemas.catalog.load import Catalog, CatalogError, load_catalog
from gcluster.schemas.catalog.machine import Cpu, Gpu, Machine, Nic, Nvlink, Price

__all__ = [
    "Catalog",
    "CatalogError",
    "Cpu",
    "Gpu",
    "Machine",
    "Nic",
    "Nvlink",
    "Price",
    "load_catalog",
]
