"""What the codes of a fleet mean: GC851 to GC859."""

from __future__ import annotations

FLEET_CODES: dict[str, tuple[str, str]] = {
    "GC851": (
        "Two specs describe clusters of one name.",
        (
            "The name of a cluster is how every command finds it, and it stands in the names of "
            "its nodes. When name and state are both the same, the two files describe one cluster, "
            "and each `up` would undo the other's; nothing else is then said about the later file."
        ),
    ),
    "GC852": (
        "Two specs keep their state in one place.",
        (
            "`state` holds the journal, the ledger and the locks of one cluster. A second cluster "
            "that writes there would take the first one's machines for leftovers of its own."
        ),
    ),
    "GC853": (
        "A bare-metal host is claimed by two clusters.",
        (
            "A host belongs to one cluster; two would configure it in turn, each by its own rules. "
            "Hosts are the same when they are reached at one address and port, or when their names "
            "are equal and at least one of them has no address. Short names and private addresses "
            "behind different bastions may be different machines: that is a warning."
        ),
    ),
    "GC854": (
        "Networks of two clusters overlap.",
        (
            "Networks that overlap can never be routed to each other. It is an error where they "
            "must be: two local networks on one machine, or clusters with one bare-metal site "
            "(known by its bastion; without any by its name), whose routers would have two ways "
            "to one address. Elsewhere it is a warning, because it is hard to change later. "
            "Existing networks that several clusters share are fine."
        ),
    ),
    "GC855": (
        "A folder holds no cluster spec.",
        (
            "`gcluster validate FOLDER` looks at every *.yaml and *.yml file below it, except in "
            "hidden folders, and takes those that are cluster specs. There is none, which is more "
            "often a wrong path than a wish."
        ),
    ),
    "GC856": (
        "A file of a folder is left out, because it is not a cluster spec.",
        (
            "A spec says `apiVersion: gcluster/v1`. Files of policies and of machine catalogs are "
            "left out without a word; any other YAML file is named, in case it was meant to be "
            "one. A file that is named itself on the command line is always taken for a spec."
        ),
    ),
}
"""Code -> its summary and its explanation."""
