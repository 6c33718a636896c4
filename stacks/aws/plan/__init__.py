"""What a site on AWS is made of, as plain values: no SDK, no clock, no network."""
