"""The root of a spec, and its small parts: budget, monitoring, smoke test."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from .link import Link
from .model import FilePath, ImageReference, Name, PublicKey, SpecModel, Tag, updates
from .pool import Pool
from .scheduler import Scheduler
from .secrets import Secrets
from .sites import Site
from .software import ClusterSoftware, Hardening
from .storage import Checkpointing, Storage
from .units import BandwidthFloor, Duration, Percent
from .users import DirectoryUsers, User

EXPIRY_NOTICE_S = 86_400.0
"""A day: whoever looks once a day at the cluster still sees it."""
IDLE_NOTICE_S = 1_800.0
"""Time to send a job, for whoever is logged in."""
_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$(?!\n)"


class Budget(SpecModel, frozen=True):
    """Ceilings that `plan` and `up` hold the worst case of the spec against."""

    UPDATES: ClassVar = updates(
        none="max_usd_per_hour max_usd_per_month utilisation expires expires_on idle_shutdown "
        "notice",
    )

    max_usd_per_hour: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="Most the cluster may cost, every machine running, USD per hour."),
    ] = None
    max_usd_per_month: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="Most it may cost in a month of 730 hours at `utilisation`, USD."),
    ] = None
    utilisation: Annotated[
        float, Meta(gt=0, le=1, description="Share of the time that elastic nodes run.")
    ] = 1.0
    expires: Annotated[
        Duration | None,
        Meta(
            description="How long after its first `up` the cluster is removed, but its data: "
            "announced before, and never while jobs run."
        ),
    ] = None
    expires_on: Annotated[
        Annotated[str, Meta(pattern=_DAY, examples=["2027-03-31"])] | None,
        Meta(description="Day on which it is removed (UTC), as with `expires`."),
    ] = None
    idle_shutdown: Annotated[
        Duration | None,
        Meta(
            description="Removed, but its data, when no job has run or waited for so long; "
            "announced before.",
            examples=["8h"],
        ),
    ] = None
    notice: Annotated[
        Duration | None,
        Meta(
            description="How long before its end people are notified; default: 1d before it "
            "expires, 30m (at most half of `idle_shutdown`) before it is shut down."
        ),
    ] = None

    @property
    def expiry_notice_s(self) -> float:
        """Seconds between the announcement that the cluster expires and its end."""
        return EXPIRY_NOTICE_S if self.notice is None else self.notice.value

    @property
    def idle_notice_s(self) -> float:
        """Seconds between the announcement that an idle cluster is shut down and its end."""
        if self.notice is not None:
            return self.notice.value
        idle = 0.0 if self.idle_shutdown is None else self.idle_shutdown.value
        return min(IDLE_NOTICE_S, idle / 2)


class Monitoring(SpecModel, frozen=True):
    """Metrics, dashboards and alerts."""

    UPDATES: ClassVar = updates(in_place="prometheus grafana pool retention waste_alert")

    prometheus: Annotated[bool, Meta(description="Metrics of nodes, GPUs, fabric, jobs.")] = False
    grafana: Annotated[bool, Meta(description="Dashboards over them.")] = False
    pool: Annotated[
        Name | None, Meta(description="Pool whose first host runs both; default: the controller's.")
    ] = None
    retention: Annotated[Duration | None, Meta(description="How long metrics are kept.")] = None
    waste_alert: Annotated[
        Percent | None,
        Meta(description="Tell when allocated GPUs are busy less than this over an hour."),
    ] = None


class AllReduce(SpecModel, frozen=True):
    """What the AllReduce runs and what it must reach."""

    UPDATES: ClassVar = updates(none="sizes iterations floor image")

    sizes: Annotated[
        str,
        Meta(
            pattern=r"^[0-9]{1,15} ?(B|KiB|MiB|GiB)\.\.[0-9]{1,15} ?(B|KiB|MiB|GiB)$(?!\n)",
            description="Message sizes, smallest..largest; each is twice the one before it.",
            examples=["8B..16MiB", "8B..8GiB"],
        ),
    ] = "8B..16MiB"
    iterations: Annotated[int, Meta(ge=1, le=1000, description="Timed runs per size.")] = 5
    floor: Annotated[
        BandwidthFloor | None,
        Meta(
            description="Least bus bandwidth at the largest size; auto: the fabric class's for "
            "this many nodes; default: none is asked."
        ),
    ] = None
    image: Annotated[
        ImageReference | None,
        Meta(
            description="Image of the ranks under a control plane of a cloud, whose nodes have no "
            "programs of ours: with sshd, Open MPI's mpirun and nccl-tests.",
            examples=["registry.example.edu/allreduce:1.4"],
        ),
    ] = None


class Smoke(SpecModel, frozen=True):
    """Tests that the finished cluster must pass."""

    UPDATES: ClassVar = updates(none="allreduce")

    allreduce: Annotated[AllReduce, Meta(description="AllReduce over all compute nodes.")] = (
        AllReduce()
    )


class ClusterSpec(SpecModel, frozen=True, kw_only=True):
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
            description="Catalog files of your own, next to the spec: machine types to add or "
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
            "or azblob://ACCOUNT/CONTAINER; default: .gcluster/NAME next to the spec.",
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
