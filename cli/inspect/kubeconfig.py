"""`gcluster kubeconfig`: a person's way into a Kubernetes cluster, for a few hours."""

import getpass
from pathlib import Path
from typing import Annotated

import typer

from ...lifecycle.cluster.cluster import open_cluster
from ...lifecycle.cluster.hosts import existing_hosts
from ...lifecycle.cluster.outcome import Exit, LifecycleError, failure
from ...lifecycle.kubernetes.access import LONGEST_S, SHORTEST_S, grant
from ...lifecycle.nodes.ssh import SshSession
from ...schemas.spec.units import Duration
from ..console import emit
from ..options import Format, OutputFormat, Target
from ..render.document import document
from ..render.inspect.kubeconfig import access_text


def command(  # noqa: PLR0917  # typer reads the options from the parameters
    cluster: Target,
    account: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="ACCOUNT",
            help="With the rights of this account in its namespace; default: the administrator's.",
        ),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            "--user", metavar="NAME", help="Whom the audit log names; default: your own user name."
        ),
    ] = None,
    lifetime: Annotated[
        str, typer.Option("--for", metavar="TIME", help="How long it is good, 10m to 30d.")
    ] = "8h",
    oidc: Annotated[
        bool,
        typer.Option("--oidc", help="Log in at the spec's identity provider (scheduler.oidc)."),
    ] = False,
    tunnel: Annotated[
        int | None,
        typer.Option(
            "--tunnel",
            metavar="PORT",
            min=1,
            max=65535,
            help="Reach the API at this port here, and print the ssh line that opens it.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Default: the cluster's own folder."),
    ] = None,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Write a kubeconfig whose certificate ends by itself.

    gcluster kubeconfig demo · gcluster kubeconfig demo --as nlp --user ada --for 2d --out ada.yaml

    With --oidc it holds no secret: kubectl's plugin oidc-login opens a browser.
    """
    opened = open_cluster(cluster, running=True)
    with SshSession(opened.workdir) as session:
        access = grant(
            opened.spec,
            existing_hosts(opened),
            session,
            opened.workdir,
            user=user or getpass.getuser(),
            account=account,
            lifetime_s=_seconds(lifetime),
            tunnel_port=tunnel,
            out=out,
            oidc=oidc,
        )
    # As it is: a command line is not to be broken at the terminal's width.
    emit(document(access) if fmt is Format.JSON else access_text(access))
    return Exit.OK


def _seconds(lifetime: str) -> int:
    try:
        seconds = int(Duration.parse(lifetime).value)
    except ValueError as error:
        raise _wrong(f'--for "{lifetime}": {error}') from error
    if not SHORTEST_S <= seconds <= LONGEST_S:
        raise _wrong(f'--for "{lifetime}": from 10m to 30d')
    return seconds


def _wrong(summary: str) -> LifecycleError:
    return failure("GC941", summary, hint="8h", exit_code=Exit.USAGE)
