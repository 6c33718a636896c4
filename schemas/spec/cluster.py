"""The root of the spec: one cluster."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from gcluster.schemas.spec.noun import Name, Noun
from gcluster.schemas.spec.pool import Pool
from gcluster.schemas.spec.scheduler import SlurmScheduler
from gcluster.schemas.spec.secrets import AgeSecrets
from gcluster.schemas.spec.sites import Site
from gcluster.schemas.spec.smoke import Smoke
from gcluster.schemas.spec.user import User


class ClusterSpec(Noun, frozen=True):
    """One GPU cluster: where its machines come from, what they are and what runs on them."""

    api_version: Annotated[
        Literal["gcluster/v1"], Meta(description="Version of the spec language.")
    ] = field(name="apiVersion")
    name: Annotated[Name, Meta(description="Name of the cluster; unique where it runs.")]
    sites: Annotated[dict[Name, Site], Meta(min_length=1, description="Where machines come from.")]
    pools: Annotated[dict[Name, Pool], Meta(min_length=1, description="Machines that are alike.")]
    scheduler: Annotated[SlurmScheduler, Meta(description="What runs the jobs.")]
    users: Annotated[list[User], Meta(description="Accounts on every node.")] = field(
        default_factory=list
    )
    smoke: Annotated[Smoke, Meta(description="The gate at the end of `gcluster up`.")] = Smoke()
    state: Annotated[
        Annotated[
            str,
            Meta(pattern=r"^file://[^\r\n]+$(?!\n)", examples=["file:///srv/gcluster/research"]),
        ]
        | None,
        Meta(
            description="Where journal, ledger, locks and secrets are kept (a file:// URL); "
            "default: .gcluster/NAME beside the spec.",
        ),
    ] = None
    secrets: Annotated[
        AgeSecrets | None,
        Meta(description="Who encrypts secrets; default: an age key made for this cluster."),
    ] = None
