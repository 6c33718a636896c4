"""What leaves this process: shared files, URLs, SSH to the machines of a site."""
