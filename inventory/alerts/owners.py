"""Who is mailed what their own jobs waste, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

import msgspec

from ...schemas.spec import Account, ClusterSpec

USER_LABEL: Final = "gcluster.local/user"
"""Label of a pod: who of its account's members it belongs to; without it, to all of them."""

_PLAIN: Final = "[A-Za-z0-9_][A-Za-z0-9._-]*"
"""Login names that can be addresses."""


class Owners(msgspec.Struct, frozen=True, kw_only=True):
    """A receiver of mail, and the alerts it gets."""

    name: str
    """Of the receiver."""
    matchers: tuple[str, ...]
    """Alertmanager's, of the alerts."""
    group_by: tuple[str, ...]
    """Labels that the alerts of one mail have in common."""
    to: str
    """Addresses, separated by commas, as Alertmanager's template of the group's labels."""
    text: str
    """Name of the text in `messages`."""


def owners_of_jobs(spec: ClusterSpec) -> tuple[Owners, ...]:
    """Return who is mailed of jobs of Slurm: the job's user, by name, else in a domain.

    A name that is no plain one is no address.
    """
    alert = None if spec.monitoring is None else spec.monitoring.waste_alert
    if alert is None or not alert.to_owner:
        return ()
    mails = ((user.name, alert.address_of(user)) for user in spec.local_users)
    reached = {name: address for name, address in mails if address is not None}
    if spec.local_users:
        users = "|".join(reached)
        to = "".join(
            f"{{{{ if eq .GroupLabels.user {json.dumps(name)} }}}}{address}{{{{ end }}}}"
            for name, address in reached.items()
        )
    else:
        users, to = _PLAIN, f"{{{{ .GroupLabels.user }}}}@{alert.mail_domain}"
    return (
        Owners(
            name="owner",
            matchers=('alertname="GpusWasted"', f'user=~"{users}"'),
            group_by=("cluster", "alertname", "user"),
            to=to,
            text="jobs_owner",
        ),
    )


def owners_of_pods(spec: ClusterSpec, accounts: Mapping[str, Account]) -> tuple[Owners, ...]:
    """Return who is mailed of pods, by account: an account is a namespace.

    A pod's label USER_LABEL chooses among the members of its account; any other value of it, or
    none, is all of them. So a label reaches members of the account alone.
    """
    alert = None if spec.monitoring is None else spec.monitoring.waste_alert
    if alert is None or not alert.to_owner:
        return ()
    mails = {user.name: alert.address_of(user) for user in spec.local_users}
    made = []
    for account, account_spec in accounts.items():
        reached: dict[str, str] = {}
        for name in dict.fromkeys(account_spec.users):
            domain = None if alert.mail_domain is None else f"{name}@{alert.mail_domain}"
            if (address := mails.get(name) or domain) is not None:
                reached[name] = address
        if reached:
            made.append(
                Owners(
                    name=f"owner-{account}",
                    matchers=('alertname="KubeGpusWasted"', f'namespace="{account}"'),
                    group_by=("cluster", "alertname", "namespace", "user"),
                    to=_choice(reached),
                    text="pods_owner",
                )
            )
    return tuple(made)


def _choice(reached: Mapping[str, str]) -> str:
    """Return the template of the address of the group's user; of all where it is none of them."""
    cases = "{{ else ".join(
        f"if eq .GroupLabels.user {json.dumps(name)} }}}}{address}"
        for name, address in reached.items()
    )
    return f"{{{{ {cases}{{{{ else }}}}{', '.join(reached.values())}{{{{ end }}}}"
