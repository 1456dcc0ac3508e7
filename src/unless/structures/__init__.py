"""Graph, CanonicalModel, FeatureSet: what a learner returns. Imports data and below."""
