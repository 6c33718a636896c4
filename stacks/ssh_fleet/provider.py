"""SSH fleets: return the hosts of a list after a check that they respond; provision nothing."""

from __future__ import annotations

from collections.abc import Mapping

from ...schemas.diagnostics import Diagnostic, Severity
from ..bare_metal.provider import BareMetalProvider
from ..provider import SiteContext
from .reach import Endpoint, endpoints, unanswered

_SHOWN = 5


class SshFleetProvider(BareMetalProvider):
    """Bare metal with addresses from a list, whose SSH servers are checked: lists get outdated."""

    name = "ssh-fleet"
    kind = "an ssh-fleet"

    def preflight(self, context: SiteContext) -> tuple[Diagnostic, ...]:
        """Return which hosts, or whose bastions, give no greeting of an SSH server (GC927)."""
        wanted = endpoints(self.hosts(context))
        silent = unanswered(wanted)
        if not silent:
            return ()
        return (_finding(context, wanted, silent),)


def _finding(
    context: SiteContext, wanted: Mapping[Endpoint, list[str]], silent: Mapping[Endpoint, str]
) -> Diagnostic:
    hosts = [host for endpoint in silent for host in wanted[endpoint]]
    total = sum(len(each) for each in wanted.values())
    lines = [
        f"{endpoint}: {why} ({', '.join(wanted[endpoint][:_SHOWN])})"
        for endpoint, why in silent.items()
    ]
    more = f"\n... and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    none = len(hosts) == total
    return Diagnostic(
        code="GC927",
        severity=Severity.ERROR if none else Severity.WARNING,
        summary=f'site "{context.site}": {len(hosts)} of {total} hosts give no answer by SSH',
        detail="\n".join(lines[:_SHOWN]) + more,
        path=("sites", context.site),
        hint="ask the provider for the current list, and see that a firewall lets this machine in",
    )
