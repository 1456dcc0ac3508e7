"""Tests of independence, in a context or pooled over strata: three verdicts. Imports counting and below."""
