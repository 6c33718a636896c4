"""The cluster that the stories are about: one pool that is fixed, and one that comes and goes."""

SPEC = """\
apiVersion: gcluster/v1
name: trial
sites:
  lab: {{provider: simulated}}
pools:
  head: {{site: lab, role: controller}}
  gpu: {{site: lab, machine: sim.h100x8, count: {count}, quorum: 1}}
  spill: {{site: lab, machine: sim.h100x8, count: {{min: 0, max: 2}}}}
scheduler: {{type: slurm}}
"""
ELASTIC = ("spill001", "spill002")
