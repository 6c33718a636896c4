"""What `gcluster validate` found in one or many specs: as text, and as one JSON document."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ....inventory.bare_metal import bare_metal_hosts
from ....schemas.catalog import load_catalog
from ....schemas.cost.quotas import QuotaNeed, failover_needs, quota_needs
from ....schemas.fleet.checked import CheckedSpec, Report
from ....schemas.load import Loaded
from ....schemas.spec import ClusterSpec, Pool
from ...console import Console
from ..diagnostics import diagnostics_text, summary_line
from ..document import document


def report_text(report: Report, console: Console) -> str:
    """Return the report as a person reads it."""
    found = list(report.found())
    lines: list[str] = []
    if found:
        lines.append(diagnostics_text(found, console, report.texts()))
        lines += ["", summary_line(found)] if not report.many else [""]
    lines += [_right(spec) for checked in report.specs if (spec := checked.spec) is not None]
    if report.many:
        lines.append(totals(report))
    else:
        lines += [line for checked in report.specs for line in _quotas(checked)]
    return "\n".join(lines)


def _quotas(checked: CheckedSpec) -> list[str]:
    """Return what a spec takes of cloud quotas; nothing is read for specs without clouds."""
    if checked.spec is None or not any(site.is_cloud for site in checked.spec.sites.values()):
        return []
    return quota_lines(checked.loaded)


def totals(report: Report) -> str:
    """Return "3 specs: 2 errors, 1 warning"."""
    return f"{_counted(len(report.specs), 'spec')}: {summary_line(report.found())}"


def _right(spec: ClusterSpec) -> str:
    pools, hosts = len(spec.pools), host_count(spec)
    return f"ok: {spec.name}: {_counted(pools, 'pool')}, {_counted(hosts, 'host')}"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def host_count(spec: ClusterSpec) -> int:
    """Return how many machines the spec has at most."""
    count = 0
    for name, site in spec.sites.items():
        if not site.makes_machines:
            count += len(bare_metal_hosts(spec, name))
        else:
            count += sum(_most(pool) for pool in spec.pools.values() if pool.site == name)
    return count


def _most(pool: Pool) -> int:
    return 1 if pool.most is None else pool.most


def report_value(report: Report) -> dict[str, Any]:
    """Return what the JSON document says."""
    return {
        "ok": not (report.is_wrong or report.is_refused),
        "specs": [_spec_value(checked) for checked in report.specs],
        "notes": list(report.general()),
    }


def _spec_value(checked: CheckedSpec) -> dict[str, Any]:
    spec = checked.spec
    return {
        "file": checked.loaded.file,
        "ok": spec is not None,
        "cluster": spec and spec.name,
        "pools": spec and len(spec.pools),
        "hosts": spec and host_count(spec),
        "quotas": spec and _quota_needs(checked),
        "failover_quotas": spec and list(other_needs(checked.loaded)),
        "diagnostics": checked.diagnostics,
    }


def _quota_needs(checked: CheckedSpec) -> list[Any]:
    return list(needs(checked.loaded))


def for_programs(report: Report, fmt: str) -> str:
    """Return the report as "json", "sarif", "github" or "junit".

    The formats of CI servers are imported only when one is requested: they need XML, hashes and
    the explanations of all codes, for which a person who reads text need not wait.
    """
    if fmt == "json":
        return document(report_value(report))
    text: str = import_module(".ci", __package__).FORMATS[fmt](report)
    return text


_UNITS = {"vcpu": "vCPU", "gpu": "GPU", "node": "nodes"}


def needs(loaded: Loaded) -> tuple[QuotaNeed, ...]:
    """Return the quotas that a spec that is right needs; of clouds only."""
    spec = loaded.spec
    if spec is None or not any(site.is_cloud for site in spec.sites.values()):
        return ()
    return quota_needs(spec, load_catalog(loaded.catalogs))


def other_needs(loaded: Loaded) -> tuple[QuotaNeed, ...]:
    """Return the quotas that pools need at the other sites of their failover."""
    spec = loaded.spec
    if spec is None or not loaded.failover:
        return ()
    return failover_needs(spec, load_catalog(loaded.catalogs))


def quota_lines(loaded: Loaded) -> list[str]:
    """Return a line for each: what to request from the cloud, where, and for which pools."""
    return [
        *(_quota_line(need, ", ".join(need.pools)) for need in needs(loaded)),
        *(
            _quota_line(need, f"{', '.join(need.pools)}, by failover")
            for need in other_needs(loaded)
        ),
    ]


def _quota_line(need: QuotaNeed, whose: str) -> str:
    amount = f"{need.amount:,} {_UNITS[need.unit]}"
    return f"    quota of {need.provider} {need.region}: {amount} of {need.code} ({whose})"
