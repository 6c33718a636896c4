"""Accounts: one name and one uid each, on every node."""

from __future__ import annotations

from collections.abc import Iterator

from ...structure.fix.edits import Remove
from ..context import CheckContext
from ..registry import Finding, check

_SYSTEM_ACCOUNTS = frozenset(
    [
        "root",
        "daemon",
        "bin",
        "sys",
        "sync",
        "games",
        "man",
        "mail",
        "www-data",
        "backup",
        "nobody",
        "sshd",
        "messagebus",
        "syslog",
        "chrony",
        "_chrony",
        "slurm",
        "munge",
        "systemd-network",
        "systemd-resolve",
        "systemd-timesync",
    ]
)
"""Accounts that the distribution or a role makes on every node."""


@check("GC511", summary="A user name is given twice.")
def user_name_duplicate(context: CheckContext) -> Iterator[Finding]:
    """A login name belongs to one user."""
    first: dict[str, int] = {}
    for index, user in enumerate(context.users):
        before = first.setdefault(user.name, index)
        if before != index:
            earlier = ("users", before, "name")
            path = ("users", index, "name")
            yield Finding(
                summary=f'user "{user.name}" is there twice: first in line '
                f"{context.line_of(earlier)}",
                path=path,
                hint="keep one of the two",
                fix=Remove(("users", index)) if context.users[before] == user else None,
                relies_on=(path, earlier),
            )


@check("GC512", summary="Two users have the same uid.")
def uid_duplicate(context: CheckContext) -> Iterator[Finding]:
    """A uid belongs to one user.

    Files belong to numbers: two names with one uid own each other's files.
    """
    first: dict[int, int] = {}
    for index, user in enumerate(context.users):
        before = first.setdefault(user.uid, index)
        if before != index and context.users[before].name != user.name:
            earlier = ("users", before, "uid")
            path = ("users", index, "uid")
            yield Finding(
                summary=f'users "{context.users[before].name}" and "{user.name}" have the same '
                f"uid {user.uid}: first in line {context.line_of(earlier)}",
                path=path,
                hint="give each user a uid of its own",
                relies_on=(path, earlier),
            )


@check("GC513", summary="A user has the name of a system account.")
def user_named_as_system_account(context: CheckContext) -> Iterator[Finding]:
    """Accounts which every node has already can't be users of the spec.

    Changing root's, slurm's or munge's uid would stop the services that run under them.
    """
    for index, user in enumerate(context.users):
        if user.name in _SYSTEM_ACCOUNTS:
            yield Finding(
                summary=f'"{user.name}" is a system account of the nodes',
                path=("users", index, "name"),
                hint="choose another name",
            )


@check("GC510", summary="A user may log in to roles that no pool has.")
def login_pool_missing(context: CheckContext) -> Iterator[Finding]:
    """`login` names roles of pools: one of them at least is there, or the user gets in nowhere.

    An empty list says just that, and is taken at its word.
    """
    there: set[str] = {pool.role for pool in context.pools.values()}
    there |= {"compute" for pool in context.pools.values() if pool.is_compute}
    for index, user in enumerate(context.users):
        if user.login and not there & set(user.login):
            yield Finding(
                summary=f'user "{user.name}" may log in to {" and ".join(user.login)} nodes, which '
                "this cluster doesn't have",
                path=("users", index, "login"),
                hint=f"name one of {', '.join(sorted(there))}, or add a pool of that role",
                relies_on=(("users", index, "login"), ("pools",)),
            )
