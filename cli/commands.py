"""The verbs with one line of help each; `<section>/<verb>.py` holds a verb and is imported late."""

from __future__ import annotations

from typing import NamedTuple


class Verb(NamedTuple):
    """One verb of the command line."""

    name: str
    section: str
    """Heading in the help; in lower case, the package that holds the verb."""
    help: str
    """At most 60 characters; equal to the first line of the command's docstring (tested)."""
    resumable: bool = False
    """Whether it changes things, and the same command resumes where an interrupted one stopped."""

    @property
    def module(self) -> str:
        """Name of its module, relative to the package `cli`."""
        return f".{self.section.lower()}.{self.name}"


VERBS = (
    Verb("size", "Spec", "Size machines for a model: fit, time, cost, failures."),
    Verb("init", "Spec", "Write a commented spec to start from, for any provider."),
    Verb("adopt", "Spec", "Write a spec of an existing cluster, and list gaps."),
    Verb("validate", "Spec", "Check specs and show all findings."),
    Verb("explain", "Spec", "Explain a diagnostic code or an alert."),
    Verb("schema", "Spec", "Print the JSON Schema of specs, catalogs or policies."),
    Verb("machines", "Spec", "List the machine types of the catalog and their prices."),
    Verb("software", "Spec", "Show tested version combinations and those of a spec."),
    Verb("cost", "Spec", "Show the cost of specs by pool, site, market and power."),
    Verb("compile", "Spec", "Write the files that a spec compiles to."),
    Verb("bundle", "Spec", "Collect what a spec needs for a site without a network."),
    Verb("burst", "Operate", "Run jobs on rented nodes, and simulate when they spill."),
    Verb("plan", "Operate", "Show what up would change, and change nothing."),
    Verb(
        "up", "Operate", "Create or change a cluster until it passes the AllReduce.", resumable=True
    ),
    Verb("image", "Operate", "Build images with the roles already installed.", resumable=True),
    Verb(
        "smoke",
        "Operate",
        "Test the AllReduce, measure storage, or judge a saved log.",
        resumable=True,
    ),
    Verb(
        "acceptance",
        "Operate",
        "Test a whole cluster for its takeover, and sign a report.",
        resumable=True,
    ),
    Verb("run", "Operate", "Submit a workload or a command, and follow it."),
    Verb("cancel", "Operate", "End a job, or take it out of the queue."),
    Verb("repair", "Operate", "Repair the nodes in the repair queue.", resumable=True),
    Verb("drain", "Operate", "Drain nodes; running jobs finish."),
    Verb("resume", "Operate", "Return drained nodes to service."),
    Verb("reboot", "Operate", "Reboot nodes in waves, each drained first.", resumable=True),
    Verb("backup", "Operate", "Save queue and accounts, or Kubernetes' etcd, encrypted."),
    Verb(
        "restore",
        "Operate",
        "Load a backup into the controller, or the control planes.",
    ),
    Verb("state", "Operate", "Check, repair and upgrade a cluster's state."),
    Verb("rotate", "Operate", "Rotate keys and passwords of a running cluster."),
    Verb("reconcile", "Operate", "Apply what is merged to a repository of specs.", resumable=True),
    Verb("status", "Inspect", "Show nodes, conditions and the queue."),
    Verb("jobs", "Inspect", "List the jobs waiting, running and just ended, or show one."),
    Verb("logs", "Inspect", "Show what a job has printed, and follow it with -f."),
    Verb("top", "Inspect", "Show jobs and nodes by what they waste now, in dollars."),
    Verb("report", "Inspect", "Show who used and wasted GPU hours over a time, in dollars."),
    Verb("dashboard", "Inspect", "Serve a page on 127.0.0.1: health, waste, slow jobs, risks."),
    Verb("history", "Inspect", "List the runs that changed a cluster and how they ended."),
    Verb("show", "Inspect", "Show the events of one run; history lists the runs."),
    Verb(
        "drift",
        "Inspect",
        "Show drift: sites, nodes, fabric and scheduler since up.",
        resumable=True,
    ),
    Verb("ledger", "Inspect", "Compare the ledger of created resources with the sites."),
    Verb("ssh", "Inspect", "Log in to a node, or run a command there."),
    Verb("kubeconfig", "Inspect", "Write a kubeconfig whose certificate ends by itself."),
    Verb("doctor", "Inspect", "Check prerequisites and show the commands to install them."),
    Verb(
        "down",
        "Remove",
        "Remove a cluster except its data, and check for leftovers.",
        resumable=True,
    ),
    Verb("expire", "Remove", "Remove expired clusters.", resumable=True),
    Verb("unlock", "Remove", "Break an abandoned lock and free its stack."),
)
BY_NAME = {verb.name: verb for verb in VERBS}
SECTIONS = tuple(dict.fromkeys(verb.section for verb in VERBS))
