"""What would stop `up`, asked before anything is made."""
