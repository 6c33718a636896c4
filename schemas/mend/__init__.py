"""What a machine can put right in a file: fixes in terms of the document, patches of its text."""
