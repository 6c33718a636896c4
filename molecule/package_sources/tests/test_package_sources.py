"""apt takes packages from the declared repositories by their key, and from no other."""

from __future__ import annotations

import re

import pytest
from conftest import Play, Played
from testinfra.host import Host

SOURCES = "/etc/apt/sources.list.d/gcluster-*.sources"


def test_the_vendor_s_own_packages_come_from_it(host: Host) -> None:
    policy = host.check_output("apt-cache policy vendor-tool")
    assert "Candidate: 2.0-1" in policy
    assert "2.0-1 600\n" in policy


def test_a_package_of_the_distribution_is_not_taken_from_the_vendor(host: Host) -> None:
    policy = host.check_output("apt-cache policy hello")
    assert "99.0-1 100" in " ".join(policy.split())
    assert "Candidate: 99.0-1" not in policy


def test_an_older_version_is_there_to_go_back_to(host: Host) -> None:
    assert (
        host.check_output(
            "apt-get install --simulate vendor-tool=1.0-1 vendor-library=1.0-1 | grep -c ^Inst"
        )
        == "2"
    )


def declared(host: Host, name: str, **changes: str) -> dict[str, object]:
    """Return a repository as the double's address and key make it, but for what is changed."""
    uri = host.check_output("sed -n 's/^URIs: //p' /etc/apt/sources.list.d/gcluster-vendor.sources")
    address = uri.removesuffix("vendor/")
    return {
        "name": name,
        "distribution": "debian-13",
        "url": f"{address}{name}",
        "key_url": f"{address}key.asc",
        "key_fingerprint": host.check_output("cat /srv/packages/fingerprint"),
        "packages": ["vendor-*", "second-*"],
        **changes,
    }


REFUSED = {
    "wrong-key": ({"key_fingerprint": "0" * 40}, "it was not trusted"),
    "no-fingerprint": ({"key_fingerprint": ""}, "no fingerprint is known"),
    "key-away": ({"key_url": "http://127.0.0.1:9/key.asc"}, "its key can't be read"),
    "mirror-away": ({"url": "http://127.0.0.1:9/none"}, "apt refuses it"),
    "vendor-forged": ({}, "apt refuses it"),  # signed by another key
}


@pytest.fixture(scope="module")
def refusal(host: Host, converge: Play) -> tuple[str, Played]:
    """Configure all of them at once; return apt's former sources, and the result."""
    before = host.check_output(f"cat {SOURCES} | sha256sum")
    requested = [declared(host, name, **change) for name, (change, _) in REFUSED.items()]
    return before, converge(repositories=[declared(host, "vendor"), *requested])


@pytest.mark.parametrize("name", REFUSED)
def test_a_repository_that_can_not_be_trusted_or_reached_is_not_added_and_reports_why(
    host: Host, refusal: tuple[str, Played], name: str
) -> None:
    _, run = refusal
    assert run.returncode != 0
    assert re.search(rf"{name}: [^;]*{REFUSED[name][1]}", run.printed), run.printed
    assert not host.file(f"/etc/apt/sources.list.d/gcluster-{name}.sources").exists


def test_what_was_there_before_is_used_on_and_the_node_can_be_fixed(
    host: Host, converge: Play, refusal: tuple[str, Played]
) -> None:
    before, _ = refusal
    assert host.check_output(f"cat {SOURCES} | sha256sum") == before
    host.run_expect([0], "apt-get update --error-on=any")
    again = converge()
    assert again.returncode == 0, again.printed
    assert "changed=0" in again.printed


def test_only_these_repositories_count_where_that_is_queried_and_all_again_where_it_is_not(
    host: Host, converge: Play
) -> None:
    used = "apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | sort -u"
    everyone = host.check_output(used)
    vendor = declared(host, "vendor")

    run = converge(only=True, repositories=[vendor])
    assert run.returncode == 0, run.printed
    assert host.check_output(used) == f"{vendor['url']}/"
    assert not host.file("/etc/apt/keyrings/gcluster-second.gpg").exists
    host.check_output("echo 'deb http://192.0.2.1/none ./' >/etc/apt/gcluster-sources.d/mine.list")
    printed = converge(only=True, repositories=[vendor], phases=["verify"]).printed
    host.check_output("rm /etc/apt/gcluster-sources.d/mine.list")
    assert "http://192.0.2.1/none/: apt uses it too" in printed

    assert converge().returncode == 0
    assert host.check_output(used) == everyone


def test_the_key_is_the_only_one_that_the_source_accepts(host: Host) -> None:
    shown = host.check_output("gpg --show-keys --with-colons /etc/apt/keyrings/gcluster-vendor.gpg")
    assert shown.count("pub:") == 1
