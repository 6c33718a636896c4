"""Sites given by a list of addresses, as GPU clouds without a provider supply."""
