"""Estimators: settings in, fitted structure out. Imports everything but the command line."""

# The learner where none is named, in Python and on the command line. One referee decides what is said of a
# pair whatever the learner (docs/accuracy.md); what is not proposed is not said. GGS looks at every pair by
# evidence pooled over all rows, and proposes them all; its structures are the nearest to known ones (F1 in
# docs/recovery.md).
DEFAULT_LEARNER = "GGS"
