"""Lists of nodes of provisioning tools: Warewulf and OpenHPC's recipes."""
