"""Where machines come from: one file per provider, told apart by the key `provider`."""

from gcluster.schemas.spec.sites.bare_metal import BareMetalSite, Ssh
from gcluster.schemas.spec.sites.local import LocalNetwork, LocalSite
from gcluster.schemas.spec.sites.simulated import SimulatedFaults, SimulatedSite

Site = BareMetalSite | LocalSite | SimulatedSite
"""Any site; `provider:` chooses the branch."""

__all__ = [
    "BareMetalSite",
    "LocalNetwork",
    "LocalSite",
    "SimulatedFaults",
    "SimulatedSite",
    "Site",
    "Ssh",
]
