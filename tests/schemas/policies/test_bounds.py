"""What bounds an expression: a policies file is data, and can't hold anyone up for ever."""

from __future__ import annotations

import pytest

from gcluster.schemas.load import load_text
from gcluster.schemas.policies import judge
from gcluster.schemas.policies.load import load_policies_text

_USERS = "".join(f"  - {{name: u{n}, uid: {n + 1000}}}\n" for n in range(150))
_SPEC = f"""\
apiVersion: gcluster/v1
name: demo
sites: {{lab: {{provider: simulated}}}}
pools: {{head: {{site: lab, role: controller}}, gpu: {{site: lab, machine: sim.h100x8, count: 4}}}}
scheduler: {{type: slurm}}
users:
{_USERS}"""


def _findings(rule: str) -> list[tuple[str, str]]:
    """Return the codes and summaries of a rule about the cluster, from the file and the spec."""
    text = (
        "apiVersion: gcluster/policies/v1\npolicies:\n"
        "  - name: one\n    owner: ops\n    description: A rule.\n    applies_to: cluster\n"
        f"    rule: |\n      {rule}\n"
    )
    policies = load_policies_text(text, file="policies.yaml")
    loaded = load_text(_SPEC)
    assert loaded.spec is not None
    found = [*policies.diagnostics, *judge(policies, loaded)]
    return [(diagnostic.code, diagnostic.summary) for diagnostic in found]


def test_one_loop_over_every_user_is_no_matter() -> None:
    assert _findings("users.all(u, u.uid >= 1000 && !u.sudo)") == []


def test_loops_inside_loops_end_after_10_000_rounds_and_let_nothing_through() -> None:
    ((code, summary),) = _findings("users.all(a, users.all(b, users.all(c, true)))")
    assert code == "GC802"
    assert summary.endswith("it takes more than 10,000 rounds of loops")


@pytest.mark.parametrize(
    "rule",
    [
        "[['x']]" + ".map(x, [x, x])" * 12 + " != []",
        "['x']" + ".map(x, x + x)" * 12 + " != []",
        "[1]" + ".map(x, [x, x, x, x, x, x]).filter(y, [y, y, y, y, y, y] != [])" * 3 + " != []",
    ],
)
def test_values_that_double_in_every_loop_are_refused(rule: str) -> None:
    assert [code for code, _ in _findings(rule)] == ["GC814"]


@pytest.mark.parametrize(
    "rule",
    [
        "users.all(u, users == users)",
        "users.all(u, u in users)",
        "users.all(u, size(users + users) > 0)",
        "users.all(u, [users] == [users])",
        "users.all(u, (true ? users : users) == users)",
        "users.all(u, dyn(users) != users)",
        "users.all(u, cost.pools == cost.pools)",
        "users.all(u, [1, 2].all(users, users > 0) && pools == pools)",
    ],
)
def test_whole_lists_are_not_compared_in_every_round(rule: str) -> None:
    assert [code for code, _ in _findings(rule)] == ["GC814"]


@pytest.mark.parametrize(
    "rule",
    [
        "users == users",
        "users.all(u, u.name in ['root', 'admin'] == false)",
        "users.all(u, u.groups == [] || 'wheel' in u.groups)",
        "pools.all(p, p.market.all(m, m != 'spot') && p.count.max + 1 > 0)",
        "pools.all(p, p.machine == null || p.machine.gpu.count * p.count.max <= 64)",
        "users.filter(u, u.sudo).map(u, u.name) == []",
        "users.all(u, u == u && size(users) < 1000 && users[0].uid > 0)",
        "users.exists(u, pools.all(p, p.site == sites[0]))",
        "users.all(u, pools.exists(p, p.name == u.name) || 'users == users' != r'\\d' || u.sudo)",
    ],
)
def test_ordinary_comparisons_are_not_refused(rule: str) -> None:
    assert _findings(rule) == []


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ("(" * 100 + "true" + ")" * 100, "GC811"),
        ("[" * 100 + "]" * 100 + " == []", "GC811"),
        ("0 < 1" + " + 1" * 100, "GC811"),
        ("true || " * 300 + "true", "GC006"),
    ],
)
def test_what_is_nested_too_deep_or_too_long_is_refused(rule: str, code: str) -> None:
    assert [code for code, _ in _findings(rule)] == [code]


def test_a_regular_expression_that_backtracks_elsewhere_is_answered_at_once() -> None:
    assert [code for code, _ in _findings(f"'{'a' * 500}!'.matches('(a+)+$')")] == ["GC801"]
