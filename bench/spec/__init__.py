"""Specs: validate, load, check and compile, in cold processes and at size."""
