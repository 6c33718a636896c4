"""What a site on Google Cloud is made of, as plain values: no SDK, no clock, no network."""
