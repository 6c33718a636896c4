# tool: set_irq_affinity_bynode.sh
# version: mlnx-tools 25.10
# machine: roce-400
$ set_irq_affinity_bynode.sh *
