"""Parses what a controller prints in one poll.

What users write (a job's comment) is at the end of its line, and each line begins with a random
mark of this poll, so that no user can forge a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from .....schemas.derived.hostlist import HostlistError, expand
from ..agent.scheduler import JobSeen, NodeSeen, Request, Seen
from ..policy import PendingJob

_COLUMNS = (
    "%A",
    "%K",
    "%P",
    "%T",
    "%r",
    "%D",
    "%N",
    "%l",
    "%e",
    "%V",
    "%a",
    "%q",
    "%u",
    "%f",
    "%k",
)
_NOTHING = "(null)"
"""What squeue prints of a job that has none."""
_WIDTHS = {"JobID": 20, "EligibleTime": 24, "tres-per-node": 80, "tres-per-job": 80}
_STATES = "PENDING,CONFIGURING,RUNNING,SUSPENDED,COMPLETING,STOPPED"

_FOR_NODES = re.compile(r"^(None|Priority|Resources|\(?ReqNodeNotAvail|\(?Nodes_required_for_job)")
"""Reasons of jobs that wait for nodes and for nothing else (squeue(1), JOB REASON CODES)."""
_GPU = re.compile(r"gpu(?::(?P<model>[A-Za-z][^:,=()]*))?[:=](?P<count>[0-9]+)")
_TIME = re.compile(r"(?:(?P<d>[0-9]+)-)?(?:(?P<h>[0-9]+):)?(?P<m>[0-9]+):(?P<s>[0-9]+)")
_TASKS = re.compile(r"([0-9]+)(?:-([0-9]+)(?::([0-9]+))?)?$")


def poll_lines(spool: str, mark: str) -> str:
    """Return the shell lines of one poll; `mark` begins each line of its output."""
    jobs = "|".join((mark, *_COLUMNS))
    more = ",".join(f"{name}:{width}" for name, width in _WIDTHS.items())
    return f"""\
export SLURM_TIME_FORMAT=%s SLURM_BITSTR_LEN=0
echo "{mark} now $(date +%s)"
for request in {spool}/*.request; do
  [ -f "$request" ] || continue
  echo "{mark} request ${{request##*/}}"
  cat "$request"
done
echo "{mark} nodes"
scontrol --oneliner show node || exit 1
echo "{mark} jobs"
squeue --noheader --states={_STATES} --format='{jobs}' || exit 1
echo "{mark} more"
squeue --noheader --states={_STATES} --Format='{more}' || exit 1
echo "{mark} end"
"""


def waiting(spool: str, seconds: float) -> str:
    """Return the shell lines that end when a request is there, or after so many seconds."""
    return f"""\
end=$(( $(date +%s) + {max(1, round(seconds))} ))
while [ "$(date +%s)" -lt "$end" ]; do
  for request in {spool}/*.request; do [ -f "$request" ] && exit 0; done
  sleep 0.5
done
"""


class CutShortError(ValueError):
    """The output is truncated, or of another command."""


def read(text: str, mark: str, gpu_models: Mapping[str, str]) -> Seen:
    """Parse the output of one poll.

    Args:
        text: the output of `poll_lines`.
        mark: the mark of this poll.
        gpu_models: GPU type as Slurm has it (h100) -> as the spec has it.

    Raises:
        CutShortError: the output is incomplete.
    """
    parts = _parts(text, mark)
    if "end" not in parts or "now" not in parts:
        raise CutShortError("its answer was cut short")
    now = float(parts["now"][0])
    more = dict(filter(None, map(_more, parts.get("more", ()))))
    jobs = (_job(line, more, gpu_models) for line in parts.get("jobs", ()))
    return Seen(
        now=now,
        requests=tuple(_requests(parts)),
        nodes=dict(filter(None, (_node(line, now) for line in parts.get("nodes", ())))),
        jobs=tuple(job for job in jobs if job is not None),
    )


def _parts(text: str, mark: str) -> dict[str, list[str]]:
    """Split at the marked lines; those of jobs carry the mark each."""
    parts: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(f"{mark} "):
            name, _, value = line[len(mark) + 1 :].partition(" ")
            key = f"{name} {value}" if name == "request" else name
            lines = parts.setdefault(key, [value] if name == "now" else [])
        elif lines is parts.get("jobs") and not line.startswith(f"{mark}|"):
            continue  # the rest of a comment that has several lines
        else:
            lines.append(line)
    return parts


def _requests(parts: Mapping[str, list[str]]) -> Iterator[Request]:
    for key, lines in parts.items():
        name, _, file = key.partition(" ")
        if name == "request":
            kind, at, *nodes = [*lines, "", ""]
            time = float(at) if at.isdecimal() else 0.0
            yield Request(id=file, kind=kind, nodes=tuple(filter(None, nodes)), at=time)


def _node(line: str, now: float) -> tuple[str, NodeSeen] | None:
    name, state = _field(line, "NodeName"), set(_field(line, "State").split("+"))
    reason = re.search(r" Reason=(.*?)(?: \[[^\[\]]*\])?\s*$", line)
    flags = {word.rstrip("*~#!%$@^-") for word in state}
    seen = _state(flags)
    if not name or seen is None:
        return None
    busy = _field(line, "LastBusyTime")
    is_idle = "IDLE" in flags and "COMPLETING" not in flags and seen == "here"
    return name, NodeSeen(
        state=seen,  # type: ignore[arg-type]  # a NodeState
        reason=reason[1] if reason else "",
        idle_since=(float(busy) if busy.isdecimal() else now) if is_idle else None,
        address=_field(line, "NodeAddr"),
        fit=not flags & {"DRAIN", "MAINTENANCE", "MAINT", "NOT_RESPONDING", "PLANNED", "RESERVED"},
    )


def _state(flags: set[str]) -> str | None:
    """Return what a node is to the agent; None: it is left alone.

    A node that is down counts as that also where it is powered down (`down~` after ResumeTimeout).
    One that is to be powered down and never answered is off; one that works still ends its job.
    """
    if flags & {"FUTURE", "UNKNOWN", ""}:
        return None
    if flags & {"DOWN", "FAIL"}:
        return "down"
    if flags & {"POWERED_DOWN", "POWERING_DOWN"} or flags >= {"POWER_DOWN", "NOT_RESPONDING"}:
        return "off"
    return "coming" if flags & {"POWERING_UP", "POWER_UP"} else "here"


def _field(line: str, key: str) -> str:
    found = re.search(rf"(?:^| ){key}=(\S*)", line)
    return found[1] if found else ""


def _more(line: str) -> tuple[str, dict[str, str]] | None:
    values, at = {}, 0
    for name, width in _WIDTHS.items():
        values[name] = line[at : at + width].strip()
        at += width
    return (values["JobID"], values) if values["JobID"] else None


def _job(
    line: str, more: Mapping[str, dict[str, str]], gpu_models: Mapping[str, str]
) -> JobSeen | None:
    fields = line.split("|")
    head, rest = fields[1 : len(_COLUMNS) - 1], fields[len(_COLUMNS) - 1 :]
    if len(head) < len(_COLUMNS) - 2 or len(rest) < 2:  # noqa: PLR2004  # features and comment
        return None
    # Features may hold "|" (or), and a comment too: behind features it is taken from the last one.
    end = 1 if rest[0] == _NOTHING else len(rest) - 1
    features, comment = "|".join(rest[:end]), "|".join(rest[end:])
    job, tasks, partition, state, why, nodes, on, limit, ends, sent, account, qos, user = head
    others = more.get(job, {})
    count = max(1, _number(nodes)) * (_tasks(tasks) if state == "PENDING" else 1)
    words = dict(word.partition("=")[::2] for word in comment.split())
    per_node, model = _gpus(others, max(1, _number(nodes)))
    return JobSeen(
        job=PendingJob(
            id=job,
            eligible_since=_when(others.get("EligibleTime", "")) or _when(sent) or 0.0,
            nodes=count,
            gpus_per_node=per_node,
            gpu_model=gpu_models.get(model.lower(), model) if model else None,
            features=_features(features),
            time_limit=_seconds(limit),
            account=_text(account),
            qos=_text(qos),
            user=_text(user),
            data=tuple(filter(None, words["data"].split(","))) if "data" in words else None,
            held="" if state != "PENDING" or _FOR_NODES.match(why) else f"it waits for {why}",
            may_leave=words.get("spill") != "no",
        ),
        partition=partition,
        nodes=_nodes(on) if state != "PENDING" else (),
        ends=_when(ends) if state != "PENDING" else None,
        starting=state == "CONFIGURING",
    )


def _features(text: str) -> frozenset[str]:
    """Return the features that all nodes must have; an expression without "and" counts as all."""
    return frozenset(re.findall(r"[A-Za-z0-9_.:-]+", "" if text == _NOTHING else text))


def _gpus(more: Mapping[str, str], nodes: int) -> tuple[int, str]:
    """Return (GPUs a node, type)."""
    for key, share in (("tres-per-node", 1), ("tres-per-job", nodes)):
        found = list(_GPU.finditer(more.get(key, "")))
        if found:
            total = sum(int(each["count"]) for each in found)
            return -(-total // share), next((e["model"] for e in found if e["model"]), "")
    return 0, ""


def _tasks(text: str) -> int:
    """Return how many tasks of an array may run at once: "0-9%2" are two."""
    ranges, _, most = text.partition("%")
    found: Iterable[re.Match[str] | None] = (_TASKS.match(part) for part in ranges.split(","))
    count = sum(
        (int(part[2] or part[1]) - int(part[1])) // int(part[3] or 1) + 1 for part in found if part
    )
    return max(1, min(count, int(most) if most.isdecimal() and int(most) else count))


def _nodes(text: str) -> tuple[str, ...]:
    try:
        return tuple(expand(text)) if text.strip() else ()
    except HostlistError:
        return ()


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _when(text: str) -> float | None:
    return float(text) if text.isdecimal() else None


def _text(text: str) -> str | None:
    return None if text in {"", _NOTHING, "N/A"} else text


def _seconds(text: str) -> float | None:
    """Return a time limit in seconds; None for those that aren't any."""
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    d, h, m, s = (int(found[key] or 0) for key in "dhms")
    return float(((d * 24 + h) * 60 + m) * 60 + s)
