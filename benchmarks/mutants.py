"""Files gone wrong: small good ones of every format, and ways to spoil them."""

import time
from pathlib import Path
from typing import Any

from unless.errors import FileFormatError
from unless.formats.catalogue import read_model
from unless.formats.graphml import read_graphml
from unless.formats.libra import read_data, read_schema

MN = """# a comment
2,3,2
MN {
0.5 +v0_1
-1.25 -v1_0 +v2_0
features {
1e-2 +v0_0 +v1_2
}
table {
0.1 +v0_0 +v2_0
-inf +v0_1 +v2_0
}
tree {
(v0_0
    (v1_1 0.5 -0.25)
    1.5)
}
}
"""
UAI = """MARKOV
3
2 2 3
2
1 0
2 2 1

2
0.5 0.5

6
1.0 0.25 1e-3 2.5 0 4
"""
BIF = """// asked by hand
network "small" { property author nobody; }
variable rain { type discrete [ 2 ] { yes, no }; }
variable "the grass" {
  type discrete [ 3 ] { wet, "a bit", dry };
  property position = (1, 2);
}
variable shoes { type discrete [ 2 ] { on, off }; }
probability ( rain ) { table 0.2, 0.8; }
probability ( "the grass" | rain ) {
  (no) 0.1, 0.2, 0.7;
  (yes) 0.8, 0.15, 0.05;
}
probability ( shoes | rain, "the grass" ) {
  default 0.5, 0.5;
  (yes, wet) 0.9, 0.1; /* one
  remark */
}
"""
JSON = """{"format": "unless-log-linear", "version": 1,
"variables": [
{"name":"a b","levels":["x","y"],"kind":"text"},
{"name":"c","levels":["1","2","3"],"kind":"integer"}
],
"features": [
{"weight":0.5,"conditions":[{"variable":"a b","level":"x"}]},
{"weight":"-inf",
 "conditions":[{"variable":"a b","level":"y","equal":true},{"variable":"c","level":"3","equal":false}]}
]}
"""
GRAPHML = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="name" for="node" attr.name="name" attr.type="string"/>
<key id="levels" for="node" attr.name="levels" attr.type="string"/>
<key id="share" for="edge" attr.name="share" attr.type="double"/>
<graph edgedefault="undirected">
<node id="n0"><data key="name">a b</data><data key="levels">["x", "y"]</data></node>
<node id="n1"><data key="name">c</data></node>
<edge source="n0" target="n1"><data key="share">0.5</data></edge>
</graph>
</graphml>
"""
DATA = "0,1,2\n3|0,0,1\n1,1,*\n0,1,2\n"
SEEDS = {
    ".mn": MN.encode(),
    ".uai": UAI.encode(),
    ".bif": BIF.encode(),
    ".json": JSON.encode(),
    ".graphml": GRAPHML.encode(),
    ".data": DATA.encode(),
    ".schema": b"2,3,2\n",
}
READERS = {
    ".graphml": read_graphml,
    ".data": lambda path: read_data(path, missing="level"),
    ".schema": read_schema,
}
NASTY = (
    b"{", b"}", b"(", b")", b'"', b",", b"|", b"\\", b"<", b"&", b"*", b"/*", b"//", b"\x00", b"\xff", b"\r",
    b"nan", b"inf", b"-inf", b"1e999", b"-1e-999", b"1_0", b"-0", b"1000000000", b"65535", b"9" * 5000,
    b"table", b"tree {", b"features {", b"default", b"MN {", b"+v0_0", b"v0_0", b"probability",
    b"\xe2\x80\xa8", b"\xd9\xa1", b"[", b"]", b"null", b"<!DOCTYPE a>", b"\n", b" ",
)  # fmt: skip


def read(path):
    """Read a file of any kind by its ending."""
    reader: Any = READERS.get(Path(path).suffix, read_model)
    return reader(path)


def mutant(rng, content):
    """Spoil a good file in one to four places."""
    made = bytearray(content)
    for _ in range(rng.integers(1, 5)):
        start, stop = sorted(int(place) for place in rng.integers(0, len(made) + 1, 2))
        stop = min(stop, start + 30)
        kind = rng.integers(6)
        if kind == 0:
            del made[start:stop]
        elif kind == 1:
            made[start:start] = made[start:stop] * int(rng.integers(1, 50))
        elif kind == 2:
            made[start:start] = NASTY[rng.integers(len(NASTY))]
        elif kind == 3:
            made[start:stop] = NASTY[rng.integers(len(NASTY))]
        elif kind == 4:
            made[start : start + 1] = bytes(rng.integers(0, 256, 1, dtype="u1"))
        else:
            other = SEEDS[list(SEEDS)[rng.integers(len(SEEDS))]]
            made[start:start] = other[: int(rng.integers(len(other)))]
    return bytes(made)


def large(rng, ending, size):
    """Make a good file of about this size, in which a fault can hide."""
    if ending == ".mn":
        n_lines = size // 40
        lines = (b"%f +v%d_0 -v%d_1 +v%d_1" % (w, *v) for w, v in _draws(rng, n_lines, 3, 100))
        return b",".join([b"2"] * 100) + b"\nMN {\n" + b"\n".join(lines) + b"\n}\n"
    if ending == ".uai":
        scopes = [b"2 %d %d" % tuple(v) for _, v in _draws(rng, size // 50, 2, 50) if v[0] != v[1]]
        head = b"MARKOV\n50\n" + b"2 " * 50 + b"\n%d\n" % len(scopes)
        return head + b"\n".join(scopes) + b"\n" + b"\n4\n0.25 1e-3 0.5 1.0\n" * len(scopes)
    if ending == ".bif":
        names = range(size // 120)
        variables = (b"variable v%d { type discrete [2] { a, b }; }\n" % name for name in names)
        return b"".join(variables) + b"".join(
            b"probability ( v%d | v%d ) { (a) 0.5, 0.5; (b) 1, 0; }\n" % (name, name - 1)
            if name
            else b"probability ( v0 ) { table 0.5, 0.5; }\n"
            for name in names
        )
    if ending == ".json":
        line = b'{"weight":%f,"conditions":[{"variable":"a b","level":"x"},{"variable":"c","level":"2"}]}'
        features = b",\n".join(line % weight for weight, _ in _draws(rng, size // 95, 1, 2))
        return SEEDS[".json"].split(b'{"weight"')[0] + features + b"]}\n"
    if ending == ".graphml":
        n_nodes = min(size // 40, 9_000)
        nodes = b"".join(b'<node id="n%d"/>\n' % place for place in range(n_nodes))
        edges = (b'<edge source="n%d" target="n%d"/>\n' % (place, place + 1) for place in range(n_nodes - 1))
        return SEEDS[".graphml"].split(b"<node")[0] + nodes + b"".join(edges) + b"</graph></graphml>"
    rows = rng.integers(0, 3, (size // 20, 10))
    return b"\n".join(b",".join(b"%d" % code for code in row) for row in rows.tolist()) + b"\n"


def _draws(rng, n, width, limit):
    return zip(rng.normal(size=n).tolist(), rng.integers(0, limit, (n, width)).tolist(), strict=True)


def garbage(rng, size):
    """Make a file of noise: bytes, letters, or pieces of real files and nasty words in any order."""
    kind = rng.integers(4)
    if kind == 0:
        return rng.integers(0, 256, size, dtype="u1").tobytes()
    if kind == 1:
        return rng.integers(32, 127, size, dtype="u1").tobytes()
    words = [*NASTY, *b" ".join(SEEDS.values()).split()]
    chosen = [words[place] for place in rng.integers(0, len(words), size // 6)]
    if kind == 2:
        return b" ".join(chosen)[:size]
    # A good beginning, so that the reader is drawn in.
    good = SEEDS[list(SEEDS)[rng.integers(len(SEEDS))]]
    return (good[: int(rng.integers(len(good)))] + b" ".join(chosen))[:size]


def seconds_to_refuse(content, ending, folder):
    """Read a spoiled file; whatever it is, it is read or refused in one sentence."""
    # Names that share nothing, or one would be taken for the schema or the names of another.
    path = Path(folder) / f"{ending[1:]}{ending}"
    path.write_bytes(content)
    start = time.perf_counter()
    try:
        read(path)
    except FileFormatError as error:
        message = str(error)
        assert message.startswith(repr(str(path))), message
        assert message.endswith("."), message
    return time.perf_counter() - start
