"""What would stop `up` on Google Cloud, asked before anything is made."""
