"""`gcluster rotate`: keys of a running cluster, recreated."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, TypeAlias

import typer

from ...inventory.hosts import ClusterInventory
from ...lifecycle.cluster.cluster import open_cluster
from ...lifecycle.cluster.hosts import existing_hosts
from ...lifecycle.cluster.outcome import Exit
from ...lifecycle.cluster.progress import Reporter
from ...lifecycle.nodes.ssh import SshSession
from ...lifecycle.operations.rotate.at_rest import rotate_at_rest
from ...lifecycle.operations.rotate.authorities import rotate_authorities
from ...lifecycle.operations.rotate.kept import Rotated, rotate_secret, rotate_tunnels
from ...lifecycle.operations.rotate.monitoring import rotate_monitoring
from ...lifecycle.operations.rotate.munge import rotate_munge
from ...lifecycle.operations.rotate.service_accounts import rotate_service_accounts
from ...lifecycle.operations.selection import require_slurm
from ...lifecycle.scheduler.select import scheduler_of
from ...lifecycle.secrets.encryption import rotate_encryption
from ...lifecycle.state import acquire
from ...lifecycle.up.run import Run
from ..app import group
from ..options import Format, OutputFormat, Target
from ..render.document import answer
from ..render.operate.operations import rotated_encryption_text, rotated_text
from ..render.progress import open_progress

app = group("rotate")


Rotate: TypeAlias = Callable[[Run, ClusterInventory, SshSession, Reporter], Rotated]


def rotated(cluster: str, fmt: Format, what: str, rotate: Rotate) -> Exit:
    """Rotate keys under the cluster's lock and show which hosts have them."""
    opened = open_cluster(cluster, running=True)
    hosts = existing_hosts(opened)
    opened.identify()
    with (
        open_progress(fmt.value) as report,
        SshSession(opened.workdir) as session,
        acquire(opened.store, tuple(opened.spec.sites), reason=f"rotate {what}") as lock,
        Run(opened, f"rotate {what}", lock) as run,
    ):
        result = rotate(run, hosts, session, report)
        run.finish(result.exit_code)
    answer(fmt, result, lambda: rotated_text(result))
    return result.exit_code


@app.callback()
def rotate() -> None:
    """Rotate keys and passwords of a running cluster."""


@app.command("munge")
def munge(cluster: Target, fmt: OutputFormat = Format.TEXT) -> Exit:
    """Rotate the MUNGE key; running jobs go on.

    For the seconds of the change commands of Slurm may be refused. Exit code 3 when a machine could
    not be reached: the next up gives it the new key.
    """

    def rotate(
        run: Run, hosts: "ClusterInventory", session: SshSession, report: "Reporter"
    ) -> "Rotated":
        why = "has no MUNGE key: that is Slurm's"
        require_slurm(run.cluster.spec, why, hint="Kubernetes' control planes renew their own keys")
        service = scheduler_of(run.cluster.spec, hosts, session)
        return rotate_munge(hosts, session, run.cluster.vault, service, report)

    return rotated(cluster, fmt, "munge", rotate)


@app.command("jwt")
def jwt(cluster: Target, fmt: OutputFormat = Format.TEXT) -> Exit:
    """Rotate slurmrestd's token key; old tokens become invalid.

    Clients of slurmrestd need new tokens (scontrol token). Nothing is changed where a host can't be
    reached. Exit code 3 when one was left: the next up fixes it.
    """
    return rotated(cluster, fmt, "jwt", partial(rotate_secret, word="jwt"))


@app.command("database")
def database(cluster: Target, fmt: OutputFormat = Format.TEXT) -> Exit:
    """Rotate the password of the Slurm accounting database.

    slurmdbd restarts with it; jobs go on. Nothing is changed where its host can't be reached. A
    password that the spec refers to is yours to change.
    """
    return rotated(cluster, fmt, "database", partial(rotate_secret, word="database"))


@app.command("signer")
def signer(cluster: Target, fmt: OutputFormat = Format.TEXT) -> Exit:
    """Rotate the key that signs what nodes converge to.

    Nodes get the new key over SSH; one that is off gets it from the next up.
    Nothing is changed where one can't be reached.
    """
    return rotated(cluster, fmt, "signer", partial(rotate_secret, word="signer"))


@app.command("encryption")
def encryption(cluster: Target, fmt: OutputFormat = Format.TEXT) -> Exit:
    """Encrypt all stored secrets with the spec's current keys.

    They get a new data key, which the provider of the spec encrypts: another one, or the same. The
    old provider is needed once more. No host is queried or changed. Killed half-way, run it again.
    """
    opened = open_cluster(cluster)
    applied = opened.applied_spec or opened.spec
    opened.identify()
    sites = tuple({*applied.sites, *opened.spec.sites})
    with (
        open_progress(fmt.value) as report,
        acquire(opened.store, sites, reason="rotate encryption") as lock,
        Run(opened, "rotate encryption", lock) as run,
    ):
        result = rotate_encryption(run, report)
        run.finish(result.exit_code)
    answer(fmt, result, lambda: rotated_encryption_text(result))
    return result.exit_code


@app.command("at-rest")
def at_rest(cluster: Target, fmt: OutputFormat = Format.TEXT) -> Exit:
    """Rotate the key by which Kubernetes encrypts secrets in etcd.

    Each API server restarts twice, one after the other; then all secrets are written again by the
    new key. The key before is kept to read backups with, until the next rotation. Exit code 3 when
    a control plane was left: run up, then this again.
    """
    return rotated(cluster, fmt, "at-rest", rotate_at_rest)


@app.command("service-accounts")
def service_accounts(cluster: Target, fmt: OutputFormat = Format.TEXT) -> Exit:
    """Rotate the key that signs service accounts' tokens.

    Each API server restarts twice, one after the other. Tokens of the key before are taken until
    the next rotation: where it was stolen, rotate twice, an hour apart. Stopped half-way, run it
    again.
    """
    return rotated(cluster, fmt, "service-accounts", rotate_service_accounts)


@app.command("certificate-authority")
def certificate_authority(
    cluster: Target,
    now: Annotated[
        bool, typer.Option("--now", help="Don't wait for pods that trust the old ones alone.")
    ] = False,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Rotate Kubernetes' certificate authorities; pods go on.

    Those of etcd and the front proxy too. Everyone trusts the new ones too, then all certificates
    are made again, then the old ones are trusted no more: kubeconfigs of before are refused. Exit
    code 3 when accounts' pods with a token started before: run it again when they have ended.
    Stopped half-way, too.
    """
    what = partial(rotate_authorities, now=now)
    return rotated(cluster, fmt, "certificate-authority", what)


@app.command("tunnels")
def tunnels(cluster: Target, fmt: OutputFormat = Format.TEXT) -> Exit:
    """Rotate the keys of gateways between sites.

    Connections live on. A tunnel pauses until both of its ends have changed, which takes seconds.
    Nothing is changed where a gateway can't be reached. Exit code 3 when one was left: the next up
    fixes it.
    """
    return rotated(cluster, fmt, "tunnels", rotate_tunnels)


@app.command("monitoring")
def monitoring(cluster: Target, fmt: OutputFormat = Format.TEXT) -> Exit:
    """Rotate the certificates and the password of monitoring.

    Nodes and the monitoring host know each other all the while. Nothing is changed where a host
    can't be reached. Exit code 3 when one was left: run up, then this again, which ends the trust
    in the old certificates.
    """
    return rotated(cluster, fmt, "monitoring", rotate_monitoring)
