"""Why an answer differs, by the name of the case."""

JUDGEMENTS = {}
