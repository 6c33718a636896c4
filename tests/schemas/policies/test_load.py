"""A policies file is found, read and compiled; what is wrong with it is a located diagnostic."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcluster.schemas.policies import find_policies, load_policies
from gcluster.schemas.policies.load import LoadedPolicies, load_policies_text

_HEAD = "apiVersion: gcluster/policies/v1\npolicies:\n"


def _one(rule: str, *, kind: str = "pool", more: str = "") -> LoadedPolicies:
    """Load one policy; the rule is YAML."""
    entry = f"  - name: one\n    owner: ops@example.org\n    description: A rule.\n{more}"
    return load_policies_text(
        f"{_HEAD}{entry}    applies_to: {kind}\n    rule: {rule}\n", file="policies.yaml"
    )


def _codes(loaded: LoadedPolicies) -> list[str]:
    return [found.code for found in loaded.diagnostics]


def test_policies_are_found_next_to_the_spec_and_nowhere_else(tmp_path: Path) -> None:
    spec = tmp_path / "here" / "cluster.yaml"
    spec.parent.mkdir()
    (tmp_path / "policies.yaml").touch()
    assert find_policies(spec) is None

    (spec.parent / "policies.yml").touch()
    assert find_policies(spec) == spec.parent / "policies.yml"
    (spec.parent / "policies.yaml").touch()
    assert find_policies(spec) == spec.parent / "policies.yaml"
    assert find_policies(spec.parent / "policies.yaml") is None


@pytest.mark.parametrize("kind", ["folder", "dangling link"])
def test_policies_that_cant_be_read_are_reported_and_not_passed_by(
    tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "policies.yaml"
    path.mkdir() if kind == "folder" else path.symlink_to("nowhere")
    assert find_policies(tmp_path / "cluster.yaml") == path

    loaded = load_policies(path)
    assert loaded.has_errors
    assert _codes(loaded) == ["GC021"]


@pytest.mark.parametrize(
    ("text", "code"),
    [("", "GC016"), ("# nothing\n", "GC016"), ("- a\n", "GC018"), ("a: [", "GC010")],
)
def test_a_file_that_holds_no_policies_is_an_error(text: str, code: str) -> None:
    loaded = load_policies_text(text, file="policies.yaml")
    assert (loaded.policies, _codes(loaded)) == ((), [code])
    assert loaded.diagnostics[0].span is not None


def test_a_wrong_policy_is_found_though_no_item_is_judged_and_the_others_are_kept() -> None:
    sound = "  - {name: two, owner: o, description: d, applies_to: user, rule: user.sudo}\n"
    text = f"{_HEAD}{sound}{sound.replace('two', 'three').replace('user.sudo', 'user.sudu')}"
    loaded = load_policies_text(text, file="policies.yaml")

    assert _codes(loaded) == ["GC812"]
    assert [compiled.policy.name for compiled in loaded.policies] == ["two"]


@pytest.mark.parametrize(
    "written",
    [
        "pool.nmae != 'x'",
        "\"pool.nmae != 'x'\"",
        "'!(  pool.nmae == \"\")'",
        "|\n      true ||\n      pool.nmae != 'x'",
        ">-  # folded\n      true ||\n      pool.nmae != 'x'",
        "true ||\n      pool.nmae != 'x'",
        "\n      pool . nmae != 'x'",
        "\"'é€😀' != pool.nmae\"",
    ],
)
def test_the_place_inside_an_expression_is_reported_however_yaml_writes_it(written: str) -> None:
    loaded = _one(written)
    (found,) = loaded.diagnostics
    assert found.span is not None
    line = loaded.text.splitlines()[found.span.line - 1]
    assert line[found.span.column - 1 : found.span.end_column - 1] == "nmae"


def test_where_escapes_hide_the_place_the_whole_rule_is_shown() -> None:
    (found,) = _one(r'"pool.name != \"x\" && pool.nmae != \"\""').diagnostics
    assert found.span is not None
    assert (found.span.line, found.span.column) == (7, 11)


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        ("pool", "has(pool.machine.gpu) && pool.tags.anything == 'x'"),
        ("pool", "pool.software == null || pool.software.driver == '580'"),
        ("site", "site.network == null || site.network.cidr != null"),
        ("site", "site.hosts == null || site.hosts.all(h, h.name != '')"),
        ("site", "[null] != site.hosts && site['network'] == null"),
        ("cluster", "pools.map(p, p.count.max).exists(n, n > 1) && size(pools) < 3"),
        ("cluster", "cluster.scheduler.partitions.main.max_time == null"),
        ("cluster", "cost.pools.train.usd_per_hour == null || cost.unpriced == []"),
        ("cluster", "users.all(u, u.keys.all(k, k.startsWith('ssh-')) && u.groups.size() < 9)"),
        ("storage", "storage.type != 'lustre' || storage[\"import\"].startsWith('s3://')"),
        ("account", "account.name.matches('^[a-z]+$') && account.qos.exists_one(q, q == 'x')"),
        ("partition", "partition.spill == null || partition.spill.to in partition.pools"),
    ],
)
def test_fields_of_the_spec_can_be_queried(kind: str, rule: str) -> None:
    assert _codes(_one(f"|\n      {rule}", kind=kind)) == []


@given(st.text(max_size=60))
def test_no_text_makes_a_rule_that_raises(rule: str) -> None:
    quoted = "".join(f"\\U{ord(character):08X}" for character in rule if character.isprintable())
    loaded = _one(f'"{quoted}"')
    assert loaded.policies or loaded.has_errors


_WORDS = (
    "pool pools x cost . . ( ) [ ] { } , + - * / % ! == != < && || ? : in has all map exists "
    "name count max machine 'a' 1 2.0 null true size matches"
)


@given(st.lists(st.sampled_from(_WORDS.split()), max_size=25), st.sampled_from(["pool", "cluster"]))
def test_no_expression_raises(words: list[str], kind: str) -> None:
    loaded = _one(f"|\n      {' '.join(words)} true", kind=kind)
    assert loaded.policies or loaded.has_errors


def test_nothing_of_cel_is_imported_until_there_is_a_policies_file(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from gcluster.schemas.policies import find_policies;"
        f"assert find_policies(Path({str(tmp_path / 'cluster.yaml')!r})) is None;"
        "seen = ('cel', 'msgspec', 'gcluster.schemas.p');"
        "print(sorted(name for name in sys.modules if name.startswith(seen)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    expected = ["gcluster.schemas.policies", "gcluster.schemas.policies.codes"]
    assert done.stdout.decode().strip() == str(expected)
