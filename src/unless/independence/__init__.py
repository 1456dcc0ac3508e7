"""Tests of independence in a context or pooled over strata, with three verdicts. Imports counting and below."""
