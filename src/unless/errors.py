"""Every error Unless raises on purpose; each message is one sentence with the way out.

UnlessError
├── DataError (ValueError)            the table cannot be used as it is
│   ├── MissingValues                 holes, and no policy for them
│   ├── TooManyLevels                 a column that looks like an identifier or a measurement
│   └── UnknownLevel (KeyError)       a label that is not a level of its variable
├── UnknownName (KeyError)            no such variable
├── UnknownContext (LookupError)      a context the data never showed
├── SettingError (ValueError)         an argument out of its range
│   └── ImpossibleEvidence            evidence to which the model gives probability zero
├── NotConverged                      an approximate answer that is not to be trusted
├── NotFitted (ValueError, AttributeError)   asked before it learned
├── FileFormatError (ValueError)      a damaged, foreign or newer file
├── MissingExtra (ImportError)        an optional package is needed and absent
└── TooLarge (MemoryError)            would not fit; carries the estimate

What it only warns of is an UnlessWarning (UserWarning).
"""


class UnlessError(Exception):
    """Base of all errors raised on purpose."""

    def __str__(self) -> str:
        # KeyError would show its argument's repr; a sentence is what people should see.
        return str(self.args[0]) if self.args else ""


class UnlessWarning(UserWarning):
    """Something went wrong that the work can do without."""


class DataError(UnlessError, ValueError):
    """The table cannot be used as it is."""


class MissingValues(DataError):
    """Some cells are empty and no policy was chosen for them."""


class TooManyLevels(DataError):
    """A column has more levels than a table of categories should."""


class UnknownLevel(DataError, KeyError):
    """A label is not among the levels of its variable."""


class UnknownName(UnlessError, KeyError):
    """No variable has this name."""


class UnknownContext(UnlessError, LookupError):
    """The data never showed this context."""


class SettingError(UnlessError, ValueError):
    """An argument is out of its range."""


class ImpossibleEvidence(SettingError):
    """The model gives the evidence probability zero, so nothing can be said given it."""


class NotConverged(UnlessError):
    """Sampling or message passing did not settle, so there is no answer that could be trusted."""


class NotFitted(UnlessError, ValueError, AttributeError):
    """The estimator was asked before it learned."""


class FileFormatError(UnlessError, ValueError):
    """A file is damaged, of another kind, or written by a newer version."""


class MissingExtra(UnlessError, ImportError):
    """An optional package is needed and absent."""


# In this order, or the error could not be made again where it arrives from another process.
class TooLarge(MemoryError, UnlessError):
    """The work would not fit into the memory allowed; the message carries the estimate."""


def interrupt_in(error: BaseException) -> KeyboardInterrupt | None:
    """Return the Ctrl-C that an error means, if it does.

    One that comes just when a kernel is called leaves it as a SystemError, one that comes just when a part of
    an archive is begun as the archive's ValueError that it cannot be closed.
    """
    cause: BaseException | None = error
    while isinstance(cause, SystemError):
        cause = cause.__cause__
    # Not any: one may be raised long after, by code that caught a Ctrl-C and does other work instead.
    if type(cause) is ValueError and "ZIP" in str(cause):
        cause = cause.__context__
    return cause if isinstance(cause, KeyboardInterrupt) else None


def __dir__() -> list[str]:
    # Tab completion shows errors and nothing else.
    return sorted(name for name, value in globals().items() if isinstance(value, type))
