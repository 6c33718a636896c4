"""Seals: next to its stamp, what each step left on a node, as it was when the step had succeeded.

A seal is a file "ROLE.PHASE" of lines KIND VALUE NAME that only root reads; hashes replace the
contents of files. Drift detection runs the same commands and compares (`lifecycle.status.drift`).
"""

from __future__ import annotations

import shlex

from ....inventory.compile import Step
from .role_files import Traces, traces_of
from .stamps import end_command

DIRECTORY = "/var/lib/gcluster/seals"
"""On every node, 0700."""

# Containers have interfaces without a device; what programs make for themselves is left out.
_LINKS = (
    "for i in /sys/class/net/*; do n=${i##*/};"
    " case $n in lo|veth*|docker*|br-*|podman*|cni*|virbr*|ifb*|wg*|tun*|tap*) continue;; esac;"
    " s= m= g=; read -r s < $i/operstate; read -r m < $i/mtu; read -r g < $i/speed;"
    ' [ "$s" ] && echo "link $s,$m,$g $n"; done;'
    " for i in /sys/class/infiniband/*/ports/*; do s= g=;"
    " read -r s < $i/state; read -r g < $i/rate;"
    " n=${i#/sys/class/infiniband/};"
    ' [ "$s" ] && echo "link ${s#*: },$(echo "$g" | tr " " _) ${n%%/*}/${n##*/}"; done'
)
_UNITS = (
    """{split(names, n, " "); a = u = "";"""
    """ for (i = 1; i <= NF; i++) {split($i, p, "=");"""
    """ if (p[1] == "ActiveState") a = p[2]; if (p[1] == "UnitFileState") u = p[2]}"""
    """ if (u != "") print "unit " u "," a, n[NR]}"""
)
_MOUNTS = (
    """index(want, " " $2 " ") {split($4, o, ","); found[$2] = $1 "," $3 "," o[1]}"""
    """ END {for (m in found) print "mount " found[m], m}"""
)

_USERS = (
    'for n in %s; do p=$(getent passwd "$n") || continue;'
    ' g=$(id -Gn "$n" | tr " " "\\n" | sort | paste -sd+);'
    ' echo "user $(echo "$p" | cut -d: -f3,4,7 | tr ":" ,),$g $n"; done'
)
"""Of each person that is there: uid, gid, shell, groups."""
_WATCHED = (
    r"""sha256sum %s | awk -v own=%s '{sub(/^\\/, ""); n = substr($0, 67);"""
    r""" if (index(own, " " n " ")) next; gsub(/ /, "\\040", n);"""
    r""" print "entry", substr($0, 1, 64), n}'"""
)
"""Contents of files that decide who can log in, except those that the role itself writes."""
_ACCOUNTS = (
    r"""awk -F: '$3 == 0 || ($3 >= 1000 && $3 < 65534 && $7 !~ /(nologin|false|sync)$/)"""
    r""" {print "account", $3 "," $7, $1}' /etc/passwd;"""
    r""" awk -F: '$1 ~ /^(root|sudo|wheel|admin|docker)$/"""
    r""" {k = split($4, m, ","); for (i = 1; i <= k; i++) print "account member " $1 ":" m[i]}'"""
    r""" /etc/group"""
)
"""Local accounts with a shell, and members of the groups that make root of them."""

_KEPT = (
    r"NR == 1 {print first; same = ($0 == first); next}"
    r" NR == FNR {if (/^(entry|account) /) {once = 1; print}"
    r" else if (same && /^(mount|link|sysctl) /) print; next}"
    r" FNR == 1 {next}"
    r' /^account / {n = $3; sub(/.*:/, "", n); if (!once || index(own, " " n " ")) print; next}'
    r" /^entry / {if (!once) print; next}"
    r" /^(mount|link|sysctl) / {if (!same) print; next} {print}"
)
"""Merge of the earlier and the new seal: what a step only checks stays as it was sealed.

Entries and accounts do too, whatever runs again: a step that runs for another reason must not
accept a foreign key.
"""


def read_seals_command(traces: Traces) -> str:
    """Return the shell line, for root, that prints KIND VALUE NAME of all that is there.

    What isn't there prints nothing.
    """
    requested = (
        (_files, traces.paths),
        (_blocks, traces.blocks),
        (_packages, traces.packages),
        (_mounts, traces.mounts),
        (_units, traces.units),
    )
    parts = [ask(names) for ask, names in requested if names]
    if traces.sysctls or traces.sysctl_files:
        parts.append(_sysctls(traces))
    if traces.users:
        parts.append(_USERS % _quoted(traces.users))
    if traces.watched:
        own = shlex.quote(" " + " ".join(traces.paths) + " ")
        parts.append(_WATCHED % (" ".join(traces.watched), own))
    if traces.accounts:
        parts.append(_ACCOUNTS)
    if traces.kernel:
        parts.append(
            'echo "kernel $(uname -r) release"; '
            "echo \"kernel $(tr ' ' , < /proc/cmdline) command-line\""
        )
    if traces.links:
        parts.append(_LINKS)
    return "; ".join(parts)


def seal_command(step: Step, digest: str) -> str:
    """Return the shell line that seals what a step left; "" where there is nothing to seal.

    It never fails: without a seal nothing is known of a node. A step that is run again seals
    mounts, links and kernel settings as they were: it repairs none of them after manual changes.
    What decides who can log in is sealed once. Phase `remove` deletes the role's seals and stamps.
    """
    if step.phase == "remove":
        return f"{end_command(DIRECTORY, step.role)}; "
    traces = traces_of(step)
    command = read_seals_command(traces)
    if not command:
        return ""
    path, content = f"{DIRECTORY}/{step.key}", f"digest {digest} stamp"
    own = shlex.quote(" " + " ".join(traces.users) + " ")
    return (
        f"( umask 077; PATH=$PATH:/usr/sbin:/sbin; mkdir -p {DIRECTORY}; "
        f"{{ echo '{content}'; {command}; }} > {path}.new; "
        f"if [ -s {path} ]; then awk -v first='{content}' -v own={own} '{_KEPT}' {path} {path}.new "
        f"> {path}.kept && mv {path}.kept {path}.new; fi; mv {path}.new {path} ) "
        "2>/dev/null || true; "
    )


def _quoted(names: tuple[str, ...]) -> str:
    return " ".join(shlex.quote(name) for name in names)


def _files(paths: tuple[str, ...]) -> str:
    return (
        f"sha256sum {_quoted(paths)} | sed 's/^\\([0-9a-f]*\\)  /file \\1 /'; "
        f"stat -c 'mode %a,%U,%G %n' {_quoted(paths)}"
    )


def _blocks(paths: tuple[str, ...]) -> str:
    return "; ".join(
        f"echo \"block $(sed -n '/^# BEGIN gcluster /,/^# END gcluster /p' {path}"
        f' | sha256sum | cut -c1-64) {path}"'
        for path in paths
    )


def _packages(names: tuple[str, ...]) -> str:
    return (
        "if command -v dpkg-query >/dev/null; then"
        " dpkg-query -W -f 'package ${Version} ${Package} ${db:Status-Abbrev}\\n'"
        f" {_quoted(names)} | sed -n 's/ .i *$//p';"
        f" else rpm -qa --qf 'package %{{VERSION}}-%{{RELEASE}} %{{NAME}}\\n' {_quoted(names)}; fi"
    )


def _mounts(paths: tuple[str, ...]) -> str:
    wanted = shlex.quote(" " + " ".join(paths) + " ")
    return f"awk -v want={wanted} '{_MOUNTS}' /proc/mounts"


def _units(names: tuple[str, ...]) -> str:
    return (
        f"systemctl show -p ActiveState -p UnitFileState {_quoted(names)}"
        f" | awk -v RS= -v names={shlex.quote(' '.join(names))} '{_UNITS}'"
    )


def _sysctls(traces: Traces) -> str:
    named = f"echo {_quoted(traces.sysctls)};" if traces.sysctls else ""
    if traces.sysctl_files:
        files = _quoted(traces.sysctl_files)
        named += f" sed -n 's/^ *\\([a-z][^ =]*\\) *=.*/\\1/p' {files};"
    show = "sed 's/^\\([^ ]*\\) = \\(.*\\)$/sysctl \\2 \\1/' | tr '\\t' ,"
    return f"{{ {named} }} | xargs -r sysctl | {show}"
