"""The end of a cluster: removed, kept data priced, leftovers searched for, expiry."""
