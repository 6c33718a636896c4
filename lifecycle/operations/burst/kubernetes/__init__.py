"""Kubernetes as the burst agent observes it by kubectl on a control plane, and acts on it.

- `demand`: which nodes the pods need that wait for want of one: pure.
- `reading`: nodes and pods from the API's answers.
- `controller`: the scheduler interface of the agent.
"""

from .controller import KubernetesController

__all__ = ["KubernetesController"]
