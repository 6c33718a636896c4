"""What all clouds share: plans, programs of Pulumi recorded and run, a site while it is worked on.

`component`, `engine.automation` and the recording itself import Pulumi; the rest needs none.
"""

import os

# Before gRPC, which Pulumi uses, is imported: its own handlers around a fork abort the child
# (SIGABRT) when that closes what it inherited, as the start of Ansible's terminal does. No child of
# ours uses gRPC.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
