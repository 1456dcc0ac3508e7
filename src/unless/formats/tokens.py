"""Words of a text one after another, each with its line."""

import re
from collections.abc import Iterator

from unless.errors import FileFormatError
from unless.formats.text import quote, wrong


class Tokens:
    """A stream of tokens that can be looked at before they are taken; "" follows the last.

    `pattern` matches every position of a text; its first group is the token, and nothing in it is layout.
    """

    def __init__(self, pattern: re.Pattern[str], text: str) -> None:
        self.text = text
        self._found: Iterator[re.Match[str]] = pattern.finditer(text)
        self.word = ""
        self.offset = 0
        self._line = 1
        self._counted = 0
        self._step()

    def _step(self) -> None:
        for match in self._found:
            if match[1] is not None:
                self.word, self.offset = match[1], match.start(1)
                return
        self.word, self.offset = "", len(self.text.rstrip())

    @property
    def line(self) -> int:
        """The line of the token that comes next."""
        # Counted on from the last time, or a file of many lines would be counted through for each of them.
        self._line += self.text.count("\n", self._counted, self.offset)
        self._counted = max(self._counted, self.offset)
        return self._line

    def take(self) -> str:
        """Take the next token."""
        word = self.word
        self._step()
        return word

    def expect(self, *words: str) -> str:
        """Take the next token, which must be one of these."""
        if self.word not in words:
            raise self.unexpected(" or ".join(map(repr, words)))
        return self.take()

    def unexpected(self, wanted: str) -> FileFormatError:
        """Say what should have come next."""
        found = quote(self.word) if self.word else "the end of the file"
        return wrong(self.line, f"{wanted} should be here, not {found}")
