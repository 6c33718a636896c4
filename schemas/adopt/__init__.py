"""A spec from what runs already: a source is read, and what can't be said in a spec is listed.

Pure: texts and plain data in, a draft out. Each part of a source is either carried over or listed
as not carried (`source.Source` keeps count), so that nothing is dropped silently.
"""
