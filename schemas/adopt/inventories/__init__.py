"""Inventories of Ansible: hosts that are there, of any playbook or of kubespray."""
