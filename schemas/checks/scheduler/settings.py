"""Settings of Slurm's own files that the spec says by their names."""

from __future__ import annotations

from collections.abc import Iterator

from ...diagnostics import PathTuple, Severity
from ...stack.lock import older
from ...stack.slurm_settings import SettingsFileName, SettingsOfFile, settings_of_files
from ...structure.fix.edits import RenameKey
from ..context import CheckContext
from ..registry import Finding, check
from ..software.versions import slurm_of_pools

_PLACE: PathTuple = ("scheduler", "settings")
_PURGES = ("Archive", "Purge")
_PASSWORD = "Pass"  # noqa: S105  # how such a setting's name ends


def _said(context: CheckContext) -> Iterator[tuple[SettingsFileName, SettingsOfFile, str]]:
    """Yield file, what is known of it, and each name that the spec has there."""
    if context.slurm is None:
        return
    settings = context.slurm.settings
    files: tuple[SettingsFileName, ...] = ("slurm", "cgroup", "slurmdbd")
    for file in files:
        for name in getattr(settings, file):
            yield file, settings_of_files()[file], name


@check("GC555", summary="Slurm knows no such setting.")
def slurm_setting_unknown(context: CheckContext) -> Iterator[Finding]:
    """Names under `scheduler.settings` are those of slurm.conf, cgroup.conf and slurmdbd.conf.

    A daemon that meets a setting which its release doesn't know does not start. The names are those
    that releases 21.08 to 26.05 read.
    """
    have = _controllers_slurm(context)
    for file, known, name in _said(context):
        releases, path = known.releases(name), (*_PLACE, file, name)
        if releases is None:
            near = context.suggest(name, known.all_names)
            question = f': did you mean "{near}"?' if near else ""
            yield Finding(
                summary=f"{file}.conf has no setting {name}{question}",
                path=path,
                at_key=True,
                fix=None if near is None else RenameKey(path, near),
            )
        elif have and releases.since is not None and older(have, releases.since):
            yield _of_release(path, f"{name} came with Slurm {releases.since}, this is {have}")
        elif have and releases.gone is not None and not older(have, releases.gone):
            yield _of_release(path, f"Slurm {releases.gone} dropped {name}, this is {have}")


def _of_release(path: PathTuple, summary: str) -> Finding:
    return Finding(
        summary=summary,
        path=path,
        at_key=True,
        hint="remove it, or choose another release: software: {slurm: ...}",
        relies_on=(path, ("software",), ("pools", "*", "software")),
    )


def _controllers_slurm(context: CheckContext) -> str:
    """Return the controllers' Slurm; "" where it isn't known."""
    if next(_said(context), None) is None:
        return ""
    versions = slurm_of_pools(context)
    controllers = (name for name, pool in context.pools.items() if pool.role == "controller")
    return next((v.version or "" for name in controllers if (v := versions.get(name))), "")


@check("GC556", summary="A setting of Slurm's that gcluster writes itself.")
def slurm_setting_written_already(context: CheckContext) -> Iterator[Finding]:
    """What gcluster writes into Slurm's files is not set a second time.

    Most of it follows from words of the spec, which the message names. Of `SchedulerParameters` the
    words are put together; passwords are never in a spec.
    """
    for file, known, name in _said(context):
        path = (*_PLACE, file, name)
        if name in known.secret:
            why, hint = f"{name} is a password", "a spec holds none: leave it out"
        elif file == "slurmdbd" and name.startswith(_PURGES) and _purges(context):
            why, hint = f"gcluster writes {name} itself", "accounting.purge_after sets it"
        elif name in known.written:
            words = known.written[name]
            why = f"gcluster writes {name} itself"
            hint = f"say it by {words}" if words else "leave it out"
        else:
            continue
        yield Finding(
            summary=why, path=path, at_key=True, hint=hint, is_secret=name.endswith(_PASSWORD)
        )


def _purges(context: CheckContext) -> bool:
    slurm = context.slurm
    accounting = None if slurm is None else slurm.accounting
    return accounting is not None and accounting.purge_after is not None


@check("GC557", summary="Settings of slurmdbd, which does not run.")
def slurmdbd_settings_without_it(context: CheckContext) -> Iterator[Finding]:
    """Accounts, QOS or `accounting` start slurmdbd: without it nothing reads its file."""
    slurm = context.slurm
    if slurm is None or not slurm.settings.slurmdbd:
        return
    if slurm.accounting is None and not slurm.accounts and not slurm.qos:
        path = (*_PLACE, "slurmdbd")
        yield Finding(
            summary="the cluster has no slurmdbd",
            path=path,
            at_key=True,
            hint="write accounting: {} to have one, or remove these settings",
            relies_on=(path, *(("scheduler", key) for key in ("accounting", "accounts", "qos"))),
        )


@check("GC566", summary="Slurm's own metrics are read without a login, or by nobody.")
def slurm_metrics_open(context: CheckContext) -> Iterator[Finding]:
    """`MetricsType` has slurmctld answer for its figures on the port that nodes and users reach.

    Slurm before 26.05 has no login for it, and refuses all clients where `PrivateData` is set, as
    gcluster does for nodes that come and go. Since 26.05 `MetricsAuthUsers` requires a token, which
    `rest_api` makes. Only a warning: squeue shows as much to all users.
    """
    slurm = context.slurm
    if slurm is None or "MetricsType" not in slurm.settings.slurm:
        return
    have, known = _controllers_slurm(context), settings_of_files()["slurm"]
    releases = known.releases("MetricsType")
    is_too_old = bool(have and releases and releases.since and older(have, releases.since))
    if "MetricsAuthUsers" in slurm.settings.slurm or is_too_old:  # GC555
        return
    path = (*_PLACE, "slurm", "MetricsType")
    elastic = any(pool.is_elastic for pool in context.pools.values())
    yield Finding(
        summary="slurmctld answers nobody for its metrics: nodes that come and go set PrivateData"
        if elastic
        else "slurmctld gives its metrics, users' and accounts' too, to all who reach its port",
        path=path,
        at_key=True,
        severity=Severity.WARNING,
        hint="leave it out: gcluster writes the same figures by the same names, behind a login"
        if elastic
        else "nothing to do, if all who reach port 6817 may read them; Slurm 26.05 and newer have "
        "MetricsAuthUsers, with rest_api",
        relies_on=(path, (*_PLACE, "slurm", "MetricsAuthUsers"), ("pools", "*", "count")),
    )
