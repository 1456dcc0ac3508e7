"""Text files read with suspicion: what is wrong with them is told by file name and line.

`Tokens` gives the words of a text one after another, each with its line.
"""

import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf, isfinite
from pathlib import Path, PurePath

from unless.data.domain import Domain, Variable
from unless.errors import FileFormatError, SettingError, UnlessError
from unless.formats import FORMATS
from unless.runtime.files import blocks_of, is_stream, replacing_all, stream_title
from unless.runtime.memory import LEAST, parse_memory, show_memory

PathLike = str | os.PathLike[str]

# Text rarely shrinks to a fiftieth; a file that unpacks further was made to fill the memory.
UNFOLDS_AT_MOST = 100
SMALL = 1 << 24
# Labels that no file spells out must not cost more than a file could.
MOST_NAMELESS_LEVELS = 1 << 20
NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
COUNT = re.compile(r"[0-9]{1,15}")
INFINITE = {"inf": inf, "+inf": inf, "-inf": -inf}


@contextmanager
def about(path: PathLike) -> Iterator[None]:
    """Name the file in whatever is said against it; what is raised inside begins "line 3: ..."."""
    name = os.fspath(path)
    try:
        yield
    except FileFormatError as error:
        link = "," if str(error).startswith("line ") else ":"
        raise FileFormatError(f"{name!r}{link} {error}") from None
    except UnlessError as error:
        raise FileFormatError(f"{name!r}: {error}") from None


@contextmanager
def valid_unicode() -> Iterator[None]:
    """Refuse to write names and labels that are not valid Unicode."""
    try:
        yield
    except UnicodeEncodeError:
        raise SettingError("A name or label is not valid Unicode text; rename it before saving.") from None


@contextmanager
def refused_in(line: int) -> Iterator[None]:
    """Name the line in whatever is said against what is made of it."""
    try:
        yield
    except UnlessError as error:
        raise wrong(line, str(error).rstrip(".")) from None


def wrong(line: int, trouble: str) -> FileFormatError:
    """Return the error that tells what is wrong in a line."""
    return FileFormatError(f"line {line}: {trouble}.")


def line_at(text: str, offset: int) -> int:
    """Return the number of the line that a position is in."""
    return text.count("\n", 0, offset) + 1


def quote(word: str) -> str:
    """Quote a word for a message, cutting a long one short."""
    return repr(word if len(word) <= 40 else word[:37] + "...")


class Taken(os.PathLike[str]):
    """What a stream held, read once; stands for the path of a file that has this content."""

    def __init__(self, title: str, content: bytes) -> None:
        self.title, self.content = title, content

    def __fspath__(self) -> str:
        return self.title

    @property
    def ending(self) -> str:
        """The ending that a file of this content should have."""
        start = self.content[: 2**12].removeprefix(b"\xef\xbb\xbf").lstrip()
        for ending, beginnings in FORMATS.items():
            if start.startswith(beginnings):
                return ending
        # BIF begins with the word, after remarks perhaps; Libra's networks begin with numbers.
        return ".bif" if re.search(rb"\bnetwork\b", start) else ".mn"


def take(path: PathLike) -> PathLike:
    """Read a model from standard input ("-"), a pipe or a FIFO, once; any other path is left as it is."""
    if isinstance(path, Taken) or not is_stream(path):
        return path
    title = stream_title(path)
    content = bytearray()
    for block in blocks_of(path, title):
        content += block
        _check_size(len(content))
    with about(title):
        if not content:
            raise FileFormatError("it is empty.")
        return Taken(title, _unpacked(bytes(content)) if content.startswith(b"\x1f\x8b") else bytes(content))


def ending_of(path: PathLike) -> str:
    """Return the ending of a file that may be packed, or that which what was taken should have."""
    if isinstance(path, Taken):
        return path.ending
    return PurePath(os.fspath(path).lower().removesuffix(".gz")).suffix


def read_content(path: PathLike) -> bytes:
    """Read a file, unpacking it if its name ends in .gz."""
    path = take(path)
    if isinstance(path, Taken):
        return path.content
    _check_size(Path(path).stat().st_size)
    packed = Path(path).read_bytes()
    return _unpacked(packed) if os.fspath(path).lower().endswith(".gz") else packed


def _check_size(n_bytes: int) -> None:
    """Refuse a model that is too large: it is held in memory, and what is made of it besides."""
    # No machine is asked how much it has for what is small on all of them.
    if n_bytes > LEAST // 2 and n_bytes > (most := parse_memory(None) // 2):
        raise FileFormatError(
            f"it is larger than {show_memory(most)}, half of the memory that may be used; read it on a "
            "larger machine."
        )


def _unpacked(packed: bytes) -> bytes:
    limit = SMALL + UNFOLDS_AT_MOST * len(packed)
    try:
        with gzip.open(io.BytesIO(packed)) as stream:
            content = stream.read(limit + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise FileFormatError(f"it cannot be unpacked ({error}).") from None
    if len(content) > limit:
        raise FileFormatError(f"it unpacks to more than {UNFOLDS_AT_MOST} times its size.")
    return content


def read_text(path: PathLike) -> str:
    """Read a text, one line ending for all."""
    return to_text(read_content(path))


def to_text(content: bytes) -> str:
    """Decode a text, one line ending for all."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise wrong(content.count(b"\n", 0, error.start) + 1, "it is not text in UTF-8") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def write_text(path: PathLike, text: str) -> None:
    """Write a text that takes its name only when it is whole."""
    write_texts((path, text))


def write_texts(*files: tuple[PathLike, str], private: bool = False) -> None:
    """Write texts that take their names when all of them are whole; new ones for their owner if `private`."""
    with valid_unicode():
        contents = [text.encode("utf-8") for _, text in files]
    with replacing_all(*(path for path, _ in files), private=private) as streams:
        for stream, content in zip(streams, contents, strict=True):
            stream.write(content)


def to_count(word: str, line: int, what: str) -> int:
    """Read a whole number of 0 or more."""
    if not COUNT.fullmatch(word):
        raise wrong(line, f"{quote(word)} is not {what}")
    return int(word)


def to_number(word: str, line: int, what: str) -> float:
    """Read a finite number, or nothing at all: float() would also take 1_000, nan and numbers too large."""
    if not NUMBER.fullmatch(word):
        raise wrong(line, f"{quote(word)} is not {what}")
    number = float(word)
    if not isfinite(number):
        raise wrong(line, f"{quote(word)} is too large a number")
    return number


def is_weight(word: str) -> bool:
    """Tell whether a word reads as a number that may be infinite."""
    return word in INFINITE or NUMBER.fullmatch(word) is not None


def to_weight(word: str, line: int) -> float:
    """Read a number that may be infinite."""
    if word in INFINITE:
        return INFINITE[word]
    return to_number(word, line, "a weight")


def to_potential(word: str, line: int, what: str) -> float:
    """Read a number of 0 or more; what is not zero never becomes it."""
    number = to_number(word, line, what)
    if number < 0:
        raise wrong(line, f"{quote(word)} is negative, which {what} cannot be")
    if not number and re.search(r"[1-9]", re.split("[eE]", word)[0]):
        raise wrong(line, f"{quote(word)} is too small a number")
    return number


def nameless_domain(sizes: list[int], line: int = 1) -> Domain:
    """Make variables v0, v1, ... with levels 0, 1, ... for a format that names neither."""
    if sum(sizes) > MOST_NAMELESS_LEVELS:
        raise wrong(
            line, f"the variables have {sum(sizes):,} levels together, more than {MOST_NAMELESS_LEVELS:,}"
        )
    labels = tuple(map(str, range(max(sizes, default=0))))
    with refused_in(line):
        return Domain(tuple(Variable(f"v{place}", labels[:size]) for place, size in enumerate(sizes)))


class Tokens:
    """A stream of tokens that can be looked at before they are taken; "" follows the last.

    `pattern` matches every position of a text; its first group is the token, and nothing in it is layout.
    """

    def __init__(self, pattern: re.Pattern[str], text: str) -> None:
        self.text = text
        self._matches: Iterator[re.Match[str]] = pattern.finditer(text)
        self.word = ""
        self.offset = 0
        self._line = 1
        self._counted = 0
        self._step()

    def _step(self) -> None:
        for match in self._matches:
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

    def require(self, *words: str) -> str:
        """Take the next token, which must be one of these."""
        if self.word not in words:
            raise self.unexpected(" or ".join(map(repr, words)))
        return self.take()

    def unexpected(self, wanted: str) -> FileFormatError:
        """Say what should have come next."""
        found = quote(self.word) if self.word else "the end of the file"
        return wrong(self.line, f"{wanted} should be here, not {found}")
