"""What a machine can put right in a file: fixes of the document, patches of its text."""
