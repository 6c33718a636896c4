"""Fixes of structural errors, and the law for all: a patch fixes what it is about."""

from __future__ import annotations

import pytest
from tests.schemas.validate_cases import CODES, cases

from gcluster.schemas.load import load, load_text
from gcluster.schemas.structure.fix.apply import apply_fixes, fixed_text

_SPEC = """\
apiVersion: gcluster/v1
name: demo  # ours
sites: {here: {provider: local}}
pools:
  head: {site: here, role: controller}
  gpu: {site: here, machine: sim.h100x8, count: 4}
scheduler: {type: slurm, partitions: {all: {pools: [gpu], default: true}}}
"""

FIXED = [
    ("apiVersion: gcluster/v1", "apiVersion: v1"),
    ("apiVersion: gcluster/v1", "apiVersion: gcluster/1"),
    ("apiVersion: gcluster/v1", "apiVersion: 1"),
    ("apiVersion: gcluster/v1\n", ""),
    ("machine", "machin"),
    ("provider: local", "provider: lokal"),
    ("type: slurm", "typ: slurm"),
    ("role: controller", "role: controler"),
    ("count: 4", 'count: "4"'),
    ("default: true", "default: yes"),
    ("pools: [gpu]", "pools: gpu"),
    ("machine: sim.h100x8", 'machine: "sim.h100-x8"'),
]
NOT_FIXED = [
    ("count: 4", "count: four"),
    ("default: true", "default: maybe"),
    ("name: demo", "name: 5"),
    ("name: demo", "name: Demo"),
    ("count: 4", "count: 0x4x"),
    ("machine", "colour"),
]


@pytest.mark.parametrize(("right", "wrong"), FIXED)
def test_a_mistake_with_one_right_answer_is_fixed(right: str, wrong: str) -> None:
    text = _SPEC.replace(right, wrong, 1)
    loaded = load_text(text)
    fixed = fixed_text(text, loaded.diagnostics)
    again = load_text(fixed.text)

    assert loaded.spec is None
    assert again.diagnostics == ()
    assert again.spec == load_text(_SPEC).spec


@pytest.mark.parametrize(("right", "wrong"), NOT_FIXED)
def test_a_mistake_that_a_person_must_decide_is_left(right: str, wrong: str) -> None:
    text = _SPEC.replace(right, wrong, 1)
    fixed = fixed_text(text, load_text(text).diagnostics)

    assert fixed.applied == ()
    assert fixed.left
    assert fixed.text == text


_METAL = """\
apiVersion: gcluster/v1
name: metal
sites:
  campus: {provider: bare-metal, ssh: {user: ops}}
  here: {provider: local, network: {cidr: 10.210.4.0/24}}
pools:
  head: {site: campus, role: controller, hosts: head01}
  gpu:
    site: campus
    machine: hgx-h100-8
    fabric: ethernet
    cpu: {sockets: 2, cores: 56, threads_per_core: 2}
    memory: 2048 GiB
    hosts:
      - gpu01
      - name: gpu[02-03]
scheduler: {type: slurm, partitions: {all: {pools: [gpu]}}}
storage: {home: {type: nfs, mount: /home, server: head}}
users:
  - {name: ada, uid: 2000}
"""

CHECKED = [
    ("      - gpu01\n", "      - gpu01\n      - gpu01\n"),
    ("      - name: gpu[02-03]\n", "      - name: gpu[02-03]\n      - name: gpu[02-03]\n"),
    ("    site: campus\n", "    site: campus\n    count: 3\n"),
    ("pools: [gpu]", "pools: [gpu, head]"),
    ("pools: [gpu]", "pools: [gup]"),
    ("cidr: 10.210.4.0/24", "cidr: 10.210.4.7/24"),
    ("  - {name: ada, uid: 2000}\n", "  - {name: ada, uid: 2000}\n" * 2),
]
UNDECIDED = [
    ("    site: campus\n", "    site: campus\n    count: 4\n"),
    ("      - gpu01\n", "      - gpu01\n      - gpu[01-02]\n"),
    ("pools: [gpu]", "pools: [head]"),
    ("  - {name: ada, uid: 2000}\n", "  - {name: ada, uid: 2000}\n  - {name: ada, uid: 2001}\n"),
]


@pytest.mark.parametrize(("right", "wrong"), CHECKED)
def test_a_finding_with_one_right_answer_is_fixed(right: str, wrong: str) -> None:
    assert load_text(_METAL).diagnostics == ()
    text = _METAL.replace(right, wrong, 1)
    found = load_text(text).diagnostics

    assert len(found) >= 1
    assert fixed_text(text, found).text == _METAL


@pytest.mark.parametrize(("right", "wrong"), UNDECIDED)
def test_a_finding_that_a_person_must_decide_is_left(right: str, wrong: str) -> None:
    text = _METAL.replace(right, wrong, 1)
    found = load_text(text).diagnostics

    assert found
    assert fixed_text(text, found).text == text


def test_a_version_number_keeps_the_digits_that_were_written() -> None:
    text = f"{_SPEC}software: {{driver: 580.10}}\n"
    assert 'driver: "580.10"' in fixed_text(text, load_text(text).diagnostics).text


def test_a_host_range_without_quotes_between_brackets_is_quoted() -> None:
    text = "pools: {gpu: {hosts: gpu[001-064], quorum: 62}}\n"
    fixed = fixed_text(text, load_text(text).diagnostics).text
    assert fixed == 'pools: {gpu: {hosts: "gpu[001-064]", quorum: 62}}\n'


def test_a_number_as_a_key_is_quoted() -> None:
    text = "pools: {5: {site: here}}\n"
    assert '{"5": {site' in fixed_text(text, load_text(text).diagnostics).text


@pytest.mark.parametrize("code", CODES)
def test_every_patch_of_a_golden_case_fixes_what_it_is_about_and_spoils_nothing(code: str) -> None:
    for case in cases(code):
        with case.folder() as folder:
            before = load(folder / "spec.yaml")
            after = apply_fixes(before).after
        patched = [d for d in before.diagnostics if d.patch is not None]
        message = [(d.code, d.summary) for d in after.diagnostics]

        assert not {(d.code, d.summary) for d in patched} & set(message)
        if case.name == "fails" and not code.startswith("GC0"):
            assert len(message) <= len(before.diagnostics) - len(patched)
