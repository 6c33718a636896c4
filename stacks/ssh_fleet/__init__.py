"""Sites whose machines come with a list of addresses, as GPU clouds without a provider hand out."""
