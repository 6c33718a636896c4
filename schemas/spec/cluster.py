"""The root of the spec: one cluster."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from .budget import Budget
from .checkpointing import Checkpointing
from .hardening import Hardening
from .link import Link
from .monitoring import Monitoring
from .noun import Name, Noun, updates
from .pool import Pool
from .scheduler import Scheduler
from .secrets import Secrets
from .sites import Site
from .smoke import Smoke
from .software import ClusterSoftware
from .storage import Storage
from .user import DirectoryUsers, User
from .words import FilePath, PublicKey, Tag


class ClusterSpec(Noun, frozen=True, kw_only=True):
    """One GPU cluster: where its machines come from, what they are and what runs on them."""

    UPDATES: ClassVar = updates(
        none="api_version catalog checkpointing smoke budget",
        in_place="owner tags links users ssh_authorities monitoring hardening converge secrets",
        rolling="software",
        replace="name scheduler state",
        destroy="sites pools storage",
    )

    api_version: Annotated[
        Literal["gcluster/v1"], Meta(description="Version of the spec language.")
    ] = field(name="apiVersion")
    name: Annotated[Name, Meta(description="Name of the cluster; unique where it runs.")]
    owner: Annotated[
        Annotated[str, Meta(pattern=r"^[^\r\n]+$(?!\n)", examples=["ml-platform@example.edu"])]
        | None,
        Meta(description="Who answers for it; stands in the tags of all that is made."),
    ] = None
    tags: Annotated[
        dict[str, Tag], Meta(description="Tags or labels of all that is made in clouds.")
    ] = field(default_factory=dict)
    catalog: Annotated[
        list[FilePath],
        Meta(
            description="Catalog files of your own, beside the spec: machine types to add or "
            "override.",
            examples=[["machines.yaml"]],
        ),
    ] = field(default_factory=list)
    sites: Annotated[dict[Name, Site], Meta(min_length=1, description="Where machines come from.")]
    links: Annotated[list[Link], Meta(description="Routes between sites.")] = field(
        default_factory=list
    )
    pools: Annotated[dict[Name, Pool], Meta(min_length=1, description="Machines that are alike.")]
    storage: Annotated[
        dict[Name, Storage], Meta(description="File systems and buckets that the nodes see.")
    ] = field(default_factory=dict)
    scheduler: Annotated[Scheduler, Meta(description="What runs the jobs.")]
    users: Annotated[
        list[User] | DirectoryUsers,
        Meta(description="Accounts on every node: a list, or a directory."),
    ] = field(default_factory=list)
    ssh_authorities: Annotated[
        list[PublicKey],
        Meta(
            description="Public keys of SSH authorities: who has a certificate of theirs for a "
            "user's name logs in as that user, on every node.",
        ),
    ] = field(default_factory=list)
    software: Annotated[
        ClusterSoftware, Meta(description="Versions of the nodes' software, and its sources.")
    ] = ClusterSoftware()
    monitoring: Annotated[
        Monitoring | None, Meta(description="What watches the cluster; default: nothing.")
    ] = None
    checkpointing: Annotated[
        Checkpointing | None, Meta(description="Checkpoints of the largest job.")
    ] = None
    hardening: Annotated[
        Hardening | None, Meta(description="What is closed on the nodes; default: nothing.")
    ] = None
    converge: Annotated[
        Literal["auto", "push", "pull"],
        Meta(
            description="How compute nodes are set up: pushed over SSH by `gcluster up`, or each "
            "node pulls a signed bundle and does it itself (on trial). auto: push.",
        ),
    ] = "auto"
    smoke: Annotated[Smoke, Meta(description="The gate at the end of `gcluster up`.")] = Smoke()
    budget: Annotated[Budget | None, Meta(description="What it may cost, how long it lives.")] = (
        None
    )
    state: Annotated[
        Annotated[
            str,
            Meta(
                pattern=r"^(file|s3|gs|azblob)://[^\r\n]+$(?!\n)",
                examples=["file:///srv/gcluster/research", "s3://acme-gcluster/research"],
            ),
        ]
        | None,
        Meta(
            description="Where journal, ledger, locks and secrets are kept: file://, s3://, gs:// "
            "or azblob://ACCOUNT/CONTAINER; default: .gcluster/NAME beside the spec.",
        ),
    ] = None
    secrets: Annotated[
        Secrets | None,
        Meta(description="Who encrypts secrets; default: an age key made for this cluster."),
    ] = None

    @property
    def local_users(self) -> list[User]:
        """Accounts that the spec lists; empty when a directory has them."""
        return self.users if isinstance(self.users, list) else []
