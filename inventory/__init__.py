"""Who is in the cluster and what each must run: the only contract between providers and Ansible."""
