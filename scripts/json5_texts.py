"""Random texts, nearly all of them nearly JSON5, as json5check, json5 and pyjson5 read them: json5_texts.py PROGRAM TEXTS SEED"""

import collections
import json
import math
import random
import subprocess
import sys

import json5
import pyjson5

SPACES = ["", "", "", " ", "\n", "\t", "\r\n", "\u00a0", "\ufeff", "\u2028", "/* c */", "// c\n", "\u3000", "\x0b"]
NUMBERS = ["0", "-0", "1", "+7", ".5", "5.", "-.5e3", "1e3", "1E-2", "0x1F", "0XfF", "-0x10", "1.50", "12345678901234567890", "01",
           "1e+", ".", "0x", "+-1", "1..2", "0x1p3", ".5e+", "1e-400", "Infinity", "NaN"]
NAMES = ["a", "b", "$c", "_d", "é", "ab1", "null", "'q'", '"x y"', "\\u0061", "a\\u0062", "π", "a\u200c", "1a", "a-b", "''", "\u2160", "\\u002d"]
PIECES = ["a", "b", "é", "\\n", "\\t", "\\v", "\\0", "\\x41", "\\u0041", "\\u00e9", "\\ud83d\\ude00", "\\\\", "\\'", '\\"', "\\/", "\\\n", "\\\r\n",
          "\\\u2028", "\u2028", "\t", "'", '"', "\\d", "\\.", "\\1", "\\x4", "\\ud800", "\n", " ", "//", "{", "\U0001f600"]


def string(r):
    quote = r.choice("'\"")
    return quote + "".join(r.choice(PIECES) for _ in range(r.randrange(5))) + quote


def value(r, depth=0):
    kind = r.randrange(10)
    if kind < 3:
        return r.choice(NUMBERS)
    if kind < 5:
        return string(r)
    if kind < 6 or depth > 3:
        return r.choice(["true", "false", "null", "tru", "undefined"]) if r.random() < 0.2 else r.choice(["true", "false", "null"])
    s = lambda: r.choice(SPACES)
    if kind < 8:
        parts = [s() + value(r, depth + 1) + s() for _ in range(r.randrange(4))]
        return "[" + ",".join(parts) + ("," if parts and r.random() < 0.3 else "") + s() + "]"
    parts = [s() + (string(r) if r.random() < 0.2 else r.choice(NAMES)) + s() + ":" + s() + value(r, depth + 1) + s()
             for _ in range(r.randrange(4))]
    return "{" + ",".join(parts) + ("," if parts and r.random() < 0.3 else "") + s() + "}"


def text(r):
    made = r.choice(SPACES) + value(r) + r.choice(SPACES)
    for _ in range(r.choice([0, 0, 0, 1, 2])):
        place = r.randrange(len(made) + 1)
        made = made[:place] + r.choice(["", "", ",", ":", "]", "}", "{", "[", "'", "\\", "1", "a", "/", "*", ".", "e"]) + made[place + r.randrange(2):]
    return made


def normal(v):
    """Halves of surrogate pairs that belong together are one character; numbers are compared as such."""
    if isinstance(v, str):
        return v.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    if isinstance(v, list):
        return [normal(x) for x in v]
    if isinstance(v, dict):
        return {normal(k): normal(x) for k, x in v.items()}
    return v


def read(function, made):
    try:
        return True, normal(function(made))
    except RecursionError:
        raise
    except Exception:  # Each library has its own.
        return False, None


def has(v, test):
    if isinstance(v, list):
        return any(has(x, test) for x in v)
    if isinstance(v, dict):
        return any(has(k, test) or has(x, test) for k, x in v.items())
    return test(v)


# What is refused although JSON5 allows it: the words of the message.
REFUSED = {
    "cannot be stored: JSON has no such number": "Infinity and NaN",
    "half of a surrogate pair": "half of a surrogate pair",
    "appears twice": "a name twice",
    "only its Unicode form": "names that are equal in another Unicode form",
    "is not an escape": "a backslash that is not needed",
    "needs quotes": "a name whose escapes stand for what no name has (json5 and pyjson5 take it)",
}


def difference(made, ours, theirs):
    """None if ours is what one of the others says; else a name for a known difference, or a complaint."""
    if not ours.startswith("!"):
        mine = normal(json.loads(ours))
        if any(good and same(mine, v) for good, v in theirs):
            return None
        if any(good for good, _ in theirs):
            return "? another value"
        return "? taken, but not by the others"
    if any(not good for good, _ in theirs):
        return None
    for words, name in REFUSED.items():
        if words in ours:
            return name
    return "? refused, but not by the others"


def same(a, b):
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return math.isclose(a, b, rel_tol=1e-15, abs_tol=0)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return type(a) is type(b) and a == b


def main():
    program, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    r = random.Random(seed)
    texts = [text(r) for _ in range(count)]
    lines = "".join(t.encode("utf-8").hex() + "\n" for t in texts)
    answers = subprocess.run([program], input=lines, capture_output=True, text=True, check=True).stdout.split("\n")[:-1]
    assert len(answers) == count, (len(answers), count)
    found, bad = collections.Counter(), []
    taken = 0
    for made, ours in zip(texts, answers):
        taken += not ours.startswith("!")
        name = difference(made, ours, [read(json5.loads, made), read(pyjson5.decode, made)])
        if name and name.startswith("?"):
            bad.append((made, ours, name))
        elif name:
            found[name] += 1
    print(f"seed {seed}: {count} texts, {taken} taken, {count - taken} refused; differences that are named:")
    for name, number in found.most_common():
        print(f"  {number:6} {name}")
    for made, ours, name in bad[:20]:
        print(f"json5: {name[2:]}: {made!a}: {ours}", file=sys.stderr)
    if bad:
        sys.exit(f"json5: {len(bad)} differences that have no name")


main()
