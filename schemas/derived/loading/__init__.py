"""What loading puts into a spec: files and lists that it names, machine types, other sites."""
