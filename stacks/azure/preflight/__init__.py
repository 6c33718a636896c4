"""What would stop `up` on Azure, asked before anything is made."""
