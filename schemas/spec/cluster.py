"""The root of a spec, and its small parts: budget, monitoring, smoke test."""

from typing import Annotated, ClassVar, Literal, TypeAlias

from msgspec import Meta, field

from .hooks import ClusterHook
from .link import Link
from .model import (
    FilePath,
    ImageReference,
    Name,
    PoolName,
    PublicKey,
    Secret,
    SpecModel,
    Tag,
    updates,
)
from .pool import Pool
from .scheduler import Scheduler, Workload
from .secrets import Secrets
from .sites import Site
from .software import ClusterSoftware, Hardening
from .storage import Checkpointing, Storage
from .units import BandwidthFloor, ByteSize, Duration, Percent
from .users import DirectoryUsers, MailAddress, User

EXPIRY_NOTICE_S = 86_400.0
"""A day: a daily look at the cluster still sees it."""
IDLE_NOTICE_S = 1_800.0
"""Time for users who are logged in to submit a job."""
_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$(?!\n)"


class Budget(SpecModel, frozen=True):
    """Ceilings that `plan` and `up` hold the worst case of the spec against."""

    UPDATES: ClassVar = updates(
        none="max_usd_per_hour max_usd_per_month utilisation expires expires_on idle_shutdown "
        "notice",
    )

    max_usd_per_hour: Annotated[float, Meta(gt=0)] | None = None
    """Most the cluster may cost, every machine running, USD per hour."""
    max_usd_per_month: Annotated[float, Meta(gt=0)] | None = None
    """Most it may cost in a month of 730 hours at `utilisation`, USD."""
    utilisation: Annotated[float, Meta(gt=0, le=1)] = 1.0
    """Share of the time that elastic nodes run."""
    expires: Duration | None = None
    """How long after its first `up` the cluster is removed, but its data: announced before, and
    never while jobs run."""
    expires_on: Annotated[str, Meta(pattern=_DAY, examples=["2027-03-31"])] | None = None
    """Day on which it is removed (UTC), as with `expires`."""
    idle_shutdown: Annotated[Duration | None, Meta(examples=["8h"])] = None
    """Removed, but its data, when no job has run or waited for so long; announced before."""
    notice: Duration | None = None
    """How long before its end people are notified; default: 1d before it expires, 30m (at most half
    of `idle_shutdown`) before it is shut down."""

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


Severity: TypeAlias = Literal["critical", "warning"]
"""critical: work stops until a person acts. warning: it will, or money is lost."""
Severities: TypeAlias = Annotated[list[Severity], Meta(min_length=1, examples=[["critical"]])]


class MailAlerts(SpecModel, frozen=True):
    """Alerts by mail."""

    UPDATES: ClassVar = updates(in_place="to sender server user password tls ca severities")

    to: Annotated[list[MailAddress], Meta(min_length=1)]
    """Who gets them."""
    sender: MailAddress = field(name="from")
    """From whom they come."""
    server: Annotated[
        str,
        Meta(
            pattern=r"^([A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\]):[0-9]{1,5}$(?!\n)",
            examples=["smtp.example.edu:587"],
        ),
    ]
    """HOST:PORT of the mail server. Port 465 is TLS from the first byte on, others begin it by
    STARTTLS."""
    user: (
        Annotated[str, Meta(pattern=r"^[^\r\n{}]+$(?!\n)", examples=["alerts@example.edu"])] | None
    ) = None
    """User of the login; default: no login."""
    password: Secret | None = None
    """By reference."""
    tls: bool = True
    """false: mail goes out in the clear where the server offers no STARTTLS."""
    ca: Annotated[str, Meta(pattern=r"^\s*-----BEGIN CERTIFICATE-----")] | None = None
    """CA certificates (PEM) that vouch for the server; default: those of the distribution."""
    severities: Severities = field(default_factory=lambda: ["critical", "warning"])
    """Alerts that are sent; default: all."""


class WebhookAlerts(SpecModel, frozen=True):
    """Alerts as JSON by HTTP POST, as Alertmanager writes them (version 4)."""

    UPDATES: ClassVar = updates(in_place="url severities")

    url: Secret
    """The URL, by reference: who knows it may post there."""
    severities: Severities = field(default_factory=lambda: ["critical", "warning"])
    """Alerts that are sent; default: all."""


class SlackAlerts(SpecModel, frozen=True):
    """Alerts in a channel of Slack, or of what takes its incoming webhooks (Mattermost)."""

    UPDATES: ClassVar = updates(in_place="url channel severities")

    url: Secret
    """URL of the incoming webhook, by reference."""
    channel: Annotated[str, Meta(pattern=r"^[#@][^\s{}]+$(?!\n)", examples=["#gpu"])] | None = None
    """Default: the webhook's own."""
    severities: Severities = field(default_factory=lambda: ["critical", "warning"])
    """Alerts that are sent; default: all."""


class Alerts(SpecModel, frozen=True):
    """Who is sent alerts; each alert goes to all that take its severity."""

    UPDATES: ClassVar = updates(in_place="mail webhook slack")

    mail: MailAlerts | None = None
    """By mail."""
    webhook: WebhookAlerts | None = None
    """To a program of yours."""
    slack: SlackAlerts | None = None
    """In a chat."""

    @property
    def references(self) -> dict[str, str]:
        """Receiver -> where its secret is: the mail server's password, a URL."""
        found = {
            "mail": self.mail.password if self.mail else None,
            "webhook": self.webhook.url if self.webhook else None,
            "slack": self.slack.url if self.slack else None,
        }
        return {name: reference for name, reference in found.items() if reference is not None}


class RemoteWrite(SpecModel, frozen=True):
    """Where Prometheus sends all that it collects: one place for many clusters, or for longer."""

    UPDATES: ClassVar = updates(in_place="url user password ca")

    url: Annotated[
        str,
        Meta(
            pattern=r"^https://[^\s@{}\"']+$(?!\n)",
            examples=["https://metrics.example.edu/api/v1/write"],
        ),
    ]
    """What takes Prometheus' remote write, over TLS."""
    user: Annotated[str, Meta(pattern=r"^[^\r\n{}:]+$(?!\n)", examples=["gpu-lab"])] | None = None
    """User of the login; default: none, or the password is a bearer token."""
    password: Secret | None = None
    """By reference: the user's password, without `user` a bearer token."""
    ca: Annotated[str, Meta(pattern=r"^\s*-----BEGIN CERTIFICATE-----")] | None = None
    """CA certificates (PEM) that vouch for the server; default: those of the distribution."""


class WasteAlert(SpecModel, frozen=True):
    """When a job's use of its GPUs is an alert (GpusWasted), sent as `alerts` says."""

    UPDATES: ClassVar = updates(in_place="below for_ min_usd_per_hour to_owner mail_domain")

    below: Annotated[Percent, Meta(examples=["40%"])]
    """SM active of its GPUs, on average, below which it is one."""
    for_: Annotated[Duration, Meta(examples=["30m"])] = field(
        name="for", default_factory=lambda: Duration.parse("30m")
    )
    """Time of that average; younger jobs are left alone."""
    min_usd_per_hour: Annotated[float, Meta(ge=0)] = 0
    """Jobs known to waste fewer dollars an hour are left alone; default: none. A pool whose price
    isn't known keeps its alerts."""
    to_owner: bool = False
    """Mail it to the job's user too, through the server of `alerts.mail`: to the `mail` of the
    user in `users`, else to LOGIN@`mail_domain`. Under Kubernetes: to the account's members."""
    mail_domain: (
        Annotated[
            str,
            Meta(
                pattern=r"^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$(?!\n)",
                examples=["example.edu"],
            ),
        ]
        | None
    ) = None
    """Domain in which each login name is an address; default: none."""

    def address_of(self, user: User) -> str | None:
        """Return where a user is reached; None: it isn't known."""
        if user.mail is None and self.mail_domain is not None:
            return f"{user.name}@{self.mail_domain}"
        return user.mail


class MetricsVolume(SpecModel, frozen=True):
    """Volume of Prometheus under Kubernetes: a claim of one that the cluster makes."""

    UPDATES: ClassVar = updates(in_place="size storage_class")

    size: Annotated[ByteSize, Meta(examples=["100 GiB"])]
    """How much it holds."""
    storage_class: (
        Annotated[str, Meta(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$(?!\n)")] | None
    ) = None
    """Class that makes it; default: the cluster's default class."""


class Monitoring(SpecModel, frozen=True):
    """Metrics of a cluster's nodes, and what shows them."""

    UPDATES: ClassVar = updates(
        in_place="prometheus alerts grafana grafana_url pool remote_write retention volume "
        "waste_alert"
    )

    prometheus: bool = False
    """An exporter on every node, Prometheus and Alertmanager on one host or in one pool."""
    alerts: Annotated[
        Alerts | None,
        Meta(
            examples=[
                {
                    "mail": {
                        "to": ["ops@example.edu"],
                        "from": "gcluster@example.edu",
                        "server": "smtp.example.edu:587",
                    }
                }
            ]
        ),
    ] = None
    """Receivers of alerts; default: none, they are on Alertmanager's page."""
    grafana: bool = False
    """A Grafana server with gcluster's dashboards, under Kubernetes. Under Slurm refused: `gcluster
    compile` writes dashboards for yours."""
    grafana_url: (
        Annotated[
            str,
            Meta(
                pattern=r"^https?://[A-Za-z0-9.:\[\]-]+(/[A-Za-z0-9._~/-]*)?$(?!\n)",
                max_length=200,
                examples=["https://grafana.example.edu"],
            ),
        ]
        | None
    ) = None
    """Where a Grafana of yours has the dashboards that `gcluster compile` writes: alerts, `top` and
    `report` link to them; default: none."""
    pool: PoolName | None = None
    """Pool whose first host runs Prometheus and Alertmanager, under Kubernetes one of its nodes;
    default: the controller's."""
    remote_write: RemoteWrite | None = None
    """Where metrics are sent as well, each with the label cluster; default: nowhere."""
    retention: Annotated[Duration | None, Meta(examples=["30d"])] = None
    """How long metrics are kept; default: 15d."""
    volume: MetricsVolume | None = None
    """Where Prometheus keeps metrics under Kubernetes; default: its pod's own disk, whose content
    is lost with the pod. Under Slurm it is /var/lib/prometheus of its host."""
    waste_alert: WasteAlert | None = None
    """Alert on jobs that leave their GPUs idle; default: none."""


class AllReduce(SpecModel, frozen=True):
    """What the AllReduce runs and what it must reach."""

    UPDATES: ClassVar = updates(none="sizes iterations floor image")

    sizes: (
        Annotated[
            str,
            Meta(
                pattern=r"^[0-9]{1,15} ?(B|KiB|MiB|GiB)\.\.[0-9]{1,15} ?(B|KiB|MiB|GiB)$(?!\n)",
                examples=["8B..16MiB", "8B..8GiB"],
            ),
        ]
        | None
    ) = None
    """Message sizes, smallest..largest; each is twice the one before it; default: up to 16 GiB or a
    quarter of a GPU's memory, 8B..16MiB without real GPUs."""
    iterations: Annotated[int, Meta(ge=1, le=1000)] = 5
    """Timed runs per size."""
    floor: BandwidthFloor | None = None
    """Least bus bandwidth at the largest size; auto: the fabric class's for this many nodes, which
    is the default of real GPUs; none: speed isn't judged."""
    image: Annotated[
        ImageReference | None, Meta(examples=["registry.example.edu/allreduce:1.4"])
    ] = None
    """Image of the ranks under a control plane of a cloud, whose nodes have no programs of ours:
    with sshd, Open MPI's mpirun and nccl-tests."""


class Smoke(SpecModel, frozen=True):
    """Tests that the finished cluster must pass."""

    UPDATES: ClassVar = updates(none="allreduce")

    allreduce: AllReduce = AllReduce()
    """AllReduce over all compute nodes."""


class ClusterSpec(SpecModel, frozen=True, kw_only=True):
    """One GPU cluster: where its machines come from, what they are and what runs on them."""

    UPDATES: ClassVar = updates(
        none="api_version catalog checkpointing smoke budget workloads",
        in_place="owner tags links users ssh_authorities monitoring hardening converge secrets "
        "hooks",
        rolling="software",
        replace="name scheduler state",
        destroy="sites pools storage",
    )

    api_version: Literal["gcluster/v1"] = field(name="apiVersion")
    """Version of the spec language."""
    name: Name
    """Name of the cluster; unique where it runs."""
    owner: (
        Annotated[str, Meta(pattern=r"^[^\r\n]+$(?!\n)", examples=["ml-platform@example.edu"])]
        | None
    ) = None
    """Who is responsible for it; in the tags of all that is made."""
    tags: dict[str, Tag] = field(default_factory=dict)
    """Tags or labels of all that is made in clouds."""
    catalog: Annotated[list[FilePath], Meta(examples=[["machines.yaml"]])] = field(
        default_factory=list
    )
    """Catalog files of your own, next to the spec: machine types to add or override."""
    sites: Annotated[dict[Name, Site], Meta(min_length=1)]
    """Where machines come from."""
    links: list[Link] = field(default_factory=list)
    """Routes between sites."""
    pools: Annotated[dict[PoolName, Pool], Meta(min_length=1)]
    """Machines that are alike."""
    storage: dict[Name, Storage] = field(default_factory=dict)
    """File systems and buckets that the nodes see."""
    scheduler: Scheduler
    """What runs the jobs."""
    users: list[User] | DirectoryUsers = field(default_factory=list)
    """Accounts on every node: a list, or a directory."""
    ssh_authorities: list[PublicKey] = field(default_factory=list)
    """Public keys of SSH authorities: who has a certificate of theirs for a user's name logs in as
    that user, on every node."""
    software: ClusterSoftware = ClusterSoftware()
    """Versions of the nodes' software, and its sources."""
    monitoring: Monitoring | None = None
    """What watches the cluster; default: nothing."""
    checkpointing: Checkpointing | None = None
    """Checkpoints of the largest job."""
    workloads: dict[Name, Workload] = field(default_factory=dict)
    """What is trained or run: `gcluster run` submits one, `gcluster compile` writes each as a
    script for sbatch (Slurm) or as a Job (Kubernetes)."""
    hardening: Hardening | None = None
    """What is closed on the nodes; default: nothing."""
    hooks: dict[Name, ClusterHook] = field(default_factory=dict)
    """Roles and scripts of your own at named points of a convergence, and programs around jobs;
    those of one point run in the order of the spec."""
    converge: Literal["auto", "push", "pull"] = "auto"
    """How compute nodes are set up: pushed over SSH by `gcluster up`, or each node pulls a signed
    bundle and does it itself (on trial). auto: push."""
    smoke: Smoke = Smoke()
    """The gate at the end of `gcluster up`."""
    budget: Budget | None = None
    """What it may cost, how long it may exist."""
    state: (
        Annotated[
            str,
            Meta(
                pattern=r"^(file|s3|gs|azblob)://[^\r\n]+$(?!\n)",
                examples=["file:///srv/gcluster/research", "s3://acme-gcluster/research"],
            ),
        ]
        | None
    ) = None
    """Where journal, ledger, locks and secrets are kept: file://, s3://, gs:// or
    azblob://ACCOUNT/CONTAINER; default: .gcluster/NAME next to the spec."""
    secrets: Secrets | None = None
    """Who encrypts secrets; default: an age key made for this cluster."""

    @property
    def local_users(self) -> list[User]:
        """Accounts that the spec lists; empty when a directory has them."""
        return self.users if isinstance(self.users, list) else []
