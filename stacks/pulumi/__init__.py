"""Pulumi without a provider: programs recorded offline, graphs as data, components, the engine.

`graph`, `recorded`, `names` and `labels` need no Pulumi; everything else imports it.
"""

import os

# Before gRPC, which Pulumi speaks, is imported: its own handlers around a fork abort the child
# (SIGABRT) when that closes what it inherited, as the start of Ansible's terminal does. No child
# of ours uses gRPC.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
