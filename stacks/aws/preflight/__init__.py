"""What would stop `up` on AWS, asked before anything is made."""
