"""How pods get GPUs and reach the fabric: device plugins, claims, networks, folders of the node."""
