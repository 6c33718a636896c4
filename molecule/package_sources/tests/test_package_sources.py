"""apt takes packages from the declared repositories by their key, and from no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Play
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


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"key_fingerprint": "0" * 40}, "it was not trusted"),
        ({"key_fingerprint": ""}, "no fingerprint is known"),
        ({"key_url": "http://127.0.0.1:9/key.asc", "key_fingerprint": "1" * 40}, "can't be read"),
        ({"url": "http://127.0.0.1:9/none"}, "apt refuses it"),
    ],
    ids=["wrong key", "no fingerprint", "key away", "mirror away"],
)
def test_a_repository_that_fails_changes_nothing_and_says_why(
    host: Host, converge: Play, change: dict[str, str], told: str
) -> None:
    before = host.check_output(f"cat {SOURCES} | sha256sum")

    run = converge(changed_repository=change)

    assert run.returncode != 0
    assert told in run.stdout
    assert host.check_output(f"cat {SOURCES} | sha256sum") == before
    host.run_expect([0], "apt-get update --error-on=any")
    assert converge().returncode == 0


def declared(host: Host, name: str) -> dict[str, object]:
    """Return the repository as the double's address and key make it."""
    uri = host.check_output("sed -n 's/^URIs: //p' /etc/apt/sources.list.d/gcluster-vendor.sources")
    address = uri.removesuffix("vendor/")
    return {
        "name": name,
        "distribution": "debian-13",
        "url": f"{address}{name}",
        "key_url": f"{address}key.asc",
        "key_fingerprint": host.check_output("cat /srv/packages/fingerprint"),
        "packages": ["vendor-*"],
    }


def test_a_repository_signed_by_another_key_is_not_added(host: Host, converge: Play) -> None:
    run = converge(repositories=[declared(host, "vendor-forged")])

    assert run.returncode != 0
    assert "apt refuses it" in run.stdout
    assert not host.file("/etc/apt/sources.list.d/gcluster-vendor-forged.sources").exists
    assert host.file("/etc/apt/sources.list.d/gcluster-vendor.sources").exists


def test_a_repository_that_is_no_longer_asked_for_is_taken_away(host: Host, converge: Play) -> None:
    source = host.file("/etc/apt/sources.list.d/gcluster-second.sources")

    assert converge(repositories=[declared(host, "vendor")]).returncode == 0
    assert not source.exists
    assert converge().returncode == 0
    assert source.exists


def test_only_these_repositories_count_where_that_is_asked_and_all_again_where_it_is_not(
    host: Host, converge: Play
) -> None:
    used = "apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | sort -u"
    everyone = host.check_output(used)

    run = converge(only=True)
    assert run.returncode == 0, run.stdout
    assert host.check_output(used) == host.check_output(
        "sed -n 's,^URIs: \\(http://[^/]*\\)/.*,\\1,p' /etc/apt/gcluster-sources.d/gcluster-vendor.sources"
    )
    host.check_output("echo 'deb http://192.0.2.1/none ./' >/etc/apt/gcluster-sources.d/mine.list")
    assert "apt uses it too" in converge(only=True, phases=["verify"]).stdout
    host.check_output("rm /etc/apt/gcluster-sources.d/mine.list")

    assert converge().returncode == 0
    assert host.check_output(used) == everyone


def test_the_key_is_the_only_one_that_the_source_trusts(host: Host) -> None:
    shown = host.check_output("gpg --show-keys --with-colons /etc/apt/keyrings/gcluster-vendor.gpg")
    assert shown.count("pub:") == 1
