"""Where machines come from: one file per provider, told apart by the key `provider`."""

from gcluster.schemas.spec.sites.aws import AwsNetwork, AwsSite, AwsSubnets
from gcluster.schemas.spec.sites.azure import AzureNetwork, AzureSite, AzureSubnets
from gcluster.schemas.spec.sites.bare_metal import BareMetalNetwork, BareMetalSite, Ssh
from gcluster.schemas.spec.sites.gcp import GcpNetwork, GcpSite
from gcluster.schemas.spec.sites.local import LocalNetwork, LocalSite
from gcluster.schemas.spec.sites.simulated import SimulatedFaults, SimulatedSite
from gcluster.schemas.spec.sites.site import (
    CloudNetwork,
    CloudSite,
    CloudSsh,
    Dns,
    NodeRoles,
    Proxy,
    SiteNoun,
)

Site = AwsSite | AzureSite | BareMetalSite | GcpSite | LocalSite | SimulatedSite
"""Any site; `provider:` chooses the branch."""

__all__ = [
    "AwsNetwork",
    "AwsSite",
    "AwsSubnets",
    "AzureNetwork",
    "AzureSite",
    "AzureSubnets",
    "BareMetalNetwork",
    "BareMetalSite",
    "CloudNetwork",
    "CloudSite",
    "CloudSsh",
    "Dns",
    "GcpNetwork",
    "GcpSite",
    "LocalNetwork",
    "LocalSite",
    "NodeRoles",
    "Proxy",
    "SimulatedFaults",
    "SimulatedSite",
    "Site",
    "SiteNoun",
    "Ssh",
]
