"""Why a cluster does not work: facts from its machines, and sentences that a person can act on."""
