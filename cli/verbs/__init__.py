"""The verbs, a module each: parse, call one function of lifecycle or below, show the result."""
