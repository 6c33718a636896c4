"""`gcluster rotate`: a new value of a secret in the vault, deployed to the hosts that use it.

The new value is stored before the first host gets it: after a kill the next `up` deploys it to the
hosts that lack it.
"""
