"""Nodes over SSH: connections, convergence by Ansible, images."""
