"""What Prometheus is given of a cluster's last AllReduce and of its end."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from gcluster.inventory.alerts import exported_metrics
from gcluster.lifecycle.smoke.judging.verdict import Verdict
from gcluster.lifecycle.up.figures import figures
from gcluster.schemas.spec import Budget
from gcluster.schemas.spec.units import Duration

BEGAN = datetime(2026, 11, 1, tzinfo=UTC)


def certificate(*, simulated: bool = False) -> dict[str, Any]:
    verdict = Verdict(
        verdict="pass",
        reasons=(),
        ranks=16,
        wrong=0,
        largest=2**34,
        busbw=392.5,
        floor=360,
        transport="infiniband",
        simulated=simulated,
    )
    return {
        "time": "2026-11-02T00:00:10Z",
        "verdict": msgspec.to_builtins(verdict),
        "members": {"gpu001": "a", "gpu002": "b"},
    }


def values(*arguments: Any) -> dict[str, float]:
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in figures(*arguments)}


def test_certificate_and_end_are_the_figures_that_alerts_use() -> None:
    found = values(certificate(), Budget(expires=Duration.parse("30d")), BEGAN)

    assert found == {
        "gcluster_allreduce_time_seconds": datetime(2026, 11, 2, 0, 0, 10, tzinfo=UTC).timestamp(),
        "gcluster_allreduce_passed": 1,
        'gcluster_allreduce_busbw_bytes_per_second{nodes="2"}': 392.5e9,
        "gcluster_end_time_seconds": datetime(2026, 12, 1, tzinfo=UTC).timestamp(),
        "gcluster_end_notice_seconds": 86_400,
    }
    assert {name.partition("{")[0] for name in found} == set(exported_metrics()["cluster"])


def test_what_isnt_known_has_no_figure() -> None:
    simulated = values(certificate(simulated=True), None, BEGAN)

    assert simulated.keys() == {"gcluster_allreduce_time_seconds", "gcluster_allreduce_passed"}
    assert values(None, Budget(max_usd_per_hour=50), BEGAN) == {}
    assert values(None, Budget(expires_on="2027-03-31"), None) == {}
