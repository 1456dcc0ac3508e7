"""What is believed about weights before data: that they are small (Gaussian), or mostly zero (Laplace)."""

import math
import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unless.data.showing import html_table
from unless.errors import SettingError

# Squares of smaller numbers, and of the inverses of larger ones, are beyond those of a computer.
_LEAST = 1e-100
_NUMBERS = (int, float, np.integer, np.floating)


@dataclass(frozen=True, repr=False)
class Prior:
    """Minus the log of a prior, up to a constant: sum of w^2 / (2 sd^2) + l1 |w|.

    An infinite sd leaves the Gaussian part out. Made by `Gaussian`, `Laplace` or their sum.
    """

    sd: float = math.inf
    l1: float = 0.0

    def __post_init__(self) -> None:
        for name, value in (("sd", self.sd), ("l1", self.l1)):
            if isinstance(value, bool) or not isinstance(value, _NUMBERS) or math.isnan(value):
                raise SettingError(f"{name}={value!r} is not a number; give a prior such as Gaussian(1.0).")
            # Numbers of numpy would be written down in another way; a frozen value is completed here.
            object.__setattr__(self, name, float(value))
        if self.sd <= 0:
            raise SettingError(f"sd={self.sd!r} must be above 0; give a prior such as Gaussian(1.0).")
        if not (_LEAST <= self.sd <= 1 / _LEAST or math.isinf(self.sd)):
            raise SettingError(f"sd={self.sd!r} is beyond what can be computed with; try Gaussian(1.0).")
        if not 0 <= self.l1 < 1 / _LEAST:
            raise SettingError(f"l1={self.l1!r} must be 0 or more, and below 1e100; try Laplace(1.0).")

    @cached_property
    def precision(self) -> float:
        """The second derivative of the Gaussian part."""
        return (1.0 / self.sd) * (1.0 / self.sd)

    def __add__(self, other: "Prior") -> "Prior":
        """Hold both beliefs at once: curvatures and slopes add up."""
        if not isinstance(other, Prior):
            return NotImplemented
        precision = self.precision + other.precision
        if math.isinf(self.sd) or math.isinf(other.sd):
            sd = min(self.sd, other.sd)
        else:
            sd = 1.0 / math.sqrt(precision)
        return Prior(sd, self.l1 + other.l1)

    def __repr__(self) -> str:
        parts = [] if math.isinf(self.sd) else [f"Gaussian({_digits(self.sd)})"]
        parts += [f"Laplace({_digits(self.l1)})"] if self.l1 else []
        return " + ".join(parts) or "None"

    def _repr_html_(self) -> str:
        return html_table(f"Prior of weights: {self!r}", (), ())


def Gaussian(sd: float = 1.0) -> Prior:  # noqa: N802 (reads as the law it is)
    """Return the belief that weights are normal around zero, with this standard deviation."""
    if isinstance(sd, _NUMBERS) and math.isinf(sd):
        raise SettingError("An infinite sd is no prior; give prior=None to have none.")
    return Prior(sd=sd)


def Laplace(l1: float) -> Prior:  # noqa: N802 (reads as the law it is)
    """Return the belief that most weights are exactly zero: each unit of weight costs `l1`."""
    return Prior(l1=l1)


NO_PRIOR = Prior()


def parse_prior(text: str) -> Prior:
    """Read a prior as it is shown: "Gaussian(1) + Laplace(5)", or "None"."""
    prior = NO_PRIOR
    for part in [] if text.strip() == "None" else text.split("+"):
        found = re.fullmatch(r"\s*(Gaussian|Laplace)\(([0-9.e-]+)\)\s*", part)
        try:
            number = float(found[2]) if found else math.nan
        except ValueError:
            number = math.nan
        if found is None or math.isnan(number):
            raise SettingError(f"{text!r} is no prior; write one such as 'Gaussian(1) + Laplace(5)'.")
        prior += Gaussian(number) if found[1] == "Gaussian" else Laplace(number)
    return prior


def _digits(number: float) -> str:
    """Write a number so that it is read back as it was."""
    whole = number < 1e15 and number == int(number)
    # A plus sign joins priors: no exponent may have one.
    return repr(int(number)) if whole else repr(float(number)).replace("+", "")
