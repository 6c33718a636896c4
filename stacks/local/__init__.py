"""Nodes on this machine: containers that run systemd and sshd, made with podman or docker."""
