"""Addresses of a cluster's dashboards in a Grafana of the user's (`monitoring.grafana_url`)."""

from __future__ import annotations

from urllib.parse import quote, urlencode


def dashboard_link(
    grafana: str | None,
    cluster: str,
    board: str,
    of: str = "",
    span: tuple[float, float] | None = None,
) -> str:
    """Return the address of a board; "" where there is no Grafana.

    Grafana's own form (its manual, "Create dashboard URL variables"): /d/UID with var-NAME, from
    and to in ms.

    Args:
        grafana: address of the server, https://HOST[/PATH].
        cluster: whose dashboards `gcluster compile` wrote.
        board: name of one (`boards`).
        of: pool, node or job that it is of.
        span: Unix times in s, from and to; None: what Grafana shows first.
    """
    if grafana is None:
        return ""
    words = {f"var-{board}": of} if of else {}
    if span is not None:
        words |= {"from": f"{span[0] * 1000:.0f}", "to": f"{span[1] * 1000:.0f}"}
    address = f"{grafana.rstrip('/')}/d/{quote(f'{cluster}-{board}')}"
    return f"{address}?{urlencode(words)}" if words else address
