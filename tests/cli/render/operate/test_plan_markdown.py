"""Plans as the comment on a pull request."""

from __future__ import annotations

from msgspec.structs import replace

from gcluster.cli.render.operate.plan_markdown import plan_markdown
from gcluster.lifecycle.planning.changes import Plan, SitePlan, StepChange
from gcluster.schemas.diagnostics import Diagnostic, Severity
from gcluster.stacks.provider import Resource, ResourceChange

_PLAN = Plan(
    cluster="demo",
    spec_hash="0",
    sites=(
        SitePlan(
            site="lab",
            provider="local",
            changes=(
                ResourceChange(
                    effect="create", resource=Resource(kind="node", name="gpu003", pool="gpu")
                ),
                ResourceChange(
                    effect="replace",
                    resource=Resource(kind="node", name="gpu001", pool="gpu"),
                    reason="machine",
                ),
                ResourceChange(effect="keep", resource=Resource(kind="network", name="net")),
            ),
        ),
    ),
    steps=(
        StepChange(
            step="nvidia_driver.install",
            pool="gpu",
            hosts="gpu002",
            count=1,
            reason="its inputs changed",
            disruption="rolling",
            at_once=1,
            jobs=3,
        ),
    ),
    unreachable=("gpu004: no route to host",),
    usd_per_hour=98.32,
    worst_usd_per_hour=196.64,
    observed_age_s=12.3,
    diagnostics=(
        Diagnostic(
            code="GC552", severity=Severity.WARNING, summary="left out", path=("monitoring",)
        ),
    ),
)
_EXPECTED = """\
<!-- gcluster plan: demo -->
### gcluster plan: `demo`

| | |
| --- | --- |
| changes | 1 to create, 1 to replace; 1 step to run |
| disruption | 1 resource replaced, 1 step rolling |
| cost afterwards | $98.32/h, at most $196.64/h |

<details><summary>site lab (local) + 1 resource</summary>

```diff
+ node gpu003 (pool gpu)
! node gpu001 (pool gpu)                                     machine
~ nvidia_driver.install on gpu002                            rolling: 1 at a time, waits for jobs, its inputs changed
```

</details>

<details><summary>not reachable</summary>

```diff
! gpu004: no route to host (what would run there is unknown)
```

</details>

<details><summary>1 warning</summary>

```diff
GC552 monitoring: left out
```

</details>"""  # noqa: E501 - as it is written


def test_a_comment_has_what_changes_how_it_disturbs_and_what_it_costs() -> None:
    assert plan_markdown(_PLAN) == _EXPECTED


def test_what_only_ages_changes_no_byte() -> None:
    busy = (replace(_PLAN.steps[0], jobs=7),)
    assert plan_markdown(replace(_PLAN, observed_age_s=9000.0, steps=busy)) == _EXPECTED


def test_a_plan_without_changes_reports_it_and_what_it_costs() -> None:
    empty = replace(_PLAN, sites=(), steps=(), unreachable=(), diagnostics=())
    answer = plan_markdown(empty)
    assert "Nothing to change" in answer
    assert "$98.32/h" in answer
    assert "<details>" not in answer


def test_a_plan_too_long_for_a_comment_is_cut_at_a_line_and_closed() -> None:
    sites = tuple(
        SitePlan(
            site=f"s{number}",
            provider="local",
            changes=(
                ResourceChange(
                    effect="create",
                    resource=Resource(kind="node", name=f"n{number}"),
                    reason="x" * 500,
                ),
            ),
        )
        for number in range(300)
    )
    answer = plan_markdown(replace(_PLAN, sites=sites))
    assert len(answer) <= 60_000
    assert answer.count("```") % 2 == 0
    assert answer.count("<details>") == answer.count("</details>")
    assert answer.endswith("`gcluster plan` shows all of it.")


def test_names_that_are_markup_stay_text() -> None:
    odd = replace(_PLAN, sites=(replace(_PLAN.sites[0], site="<b>", provider="```"),))
    answer = plan_markdown(odd)
    assert "<b>" not in answer
    assert answer.count("```") % 2 == 0
