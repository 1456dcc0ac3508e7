"""Studies that use Unless and are run from the repository; not installed with it."""
