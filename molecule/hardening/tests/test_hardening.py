"""The settings of the node, and the rollback of rules that would lock out all users."""

from __future__ import annotations

from conftest import Play, SshOptions
from testinfra.host import Host

ON_TRIAL = "/etc/gcluster/hardening/on-trial"


def test_the_running_ssh_server_offers_modern_algorithms_and_no_passwords(
    host: Host, ssh_options: SshOptions
) -> None:
    printed = host.check_output("sshd -T")
    assert "passwordauthentication no" in printed
    assert "permitrootlogin without-password" in printed
    assert "sha1" not in "".join(
        line for line in printed.splitlines() if line.startswith(("macs ", "kexalgorithms "))
    )
    weak = host.run(
        f"ssh {ssh_options('localhost')} -m hmac-sha1 -c aes128-ctr localhost true || exit 1"
    )
    assert "no matching MAC found" in weak.stderr


def test_the_firewall_drops_what_is_not_allowed(host: Host) -> None:
    chain = host.check_output("nft list chain inet gcluster input")
    assert "policy drop" in chain
    assert "tcp dport 22" in chain
    assert host.service("gcluster-firewall").is_enabled


def test_nothing_changes_packages_by_itself(host: Host) -> None:
    for timer in ("apt-daily.timer", "apt-daily-upgrade.timer"):
        assert host.run(f"systemctl is-enabled {timer}").stdout.strip() == "masked"


def test_rules_that_would_lock_all_users_out_are_put_back(host: Host, converge: Play) -> None:
    before = host.check_output("nft list chain inet gcluster input")
    refused = converge(management=["198.51.100.0/24"], trial=15)
    assert refused.returncode != 0
    assert "no login would be possible under these rules" in refused.printed
    host.check_output("timeout 60 sh -c 'while [ -e %s ]; do sleep 0.2; done'", ON_TRIAL)
    after = host.check_output("nft list chain inet gcluster input")
    assert strip(after) == strip(before)
    assert converge().returncode == 0, "the node can be repaired"


def test_a_trial_that_was_cut_off_counts_as_no_rules(host: Host, converge: Play) -> None:
    host.check_output("touch %s", ON_TRIAL)
    assert "rules are still on trial" in converge(phases=["verify"]).printed
    assert converge().returncode == 0
    assert not host.file(ON_TRIAL).exists


def strip(chain: str) -> list[str]:
    """Return a chain's lines without its counters."""
    return [line for line in chain.splitlines() if "counter" not in line]
