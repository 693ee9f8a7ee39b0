"""Runs the cases of the draft's own test suite (JSON-Schema-Test-Suite), for scripts/schema-suite.

Usage: schema_suite.py SUITE SCHEMACHECK KNOWN
"""

import json
import pathlib
import subprocess
import sys

ADDRESS = "http://localhost:1234/"


def main():
    suite, program, known = sys.argv[1:]
    root = pathlib.Path(suite)
    tests = root / "tests" / "draft2020-12"
    files = {ADDRESS + str(path.relative_to(root / "remotes")): json.loads(path.read_text())
             for path in sorted((root / "remotes").rglob("*.json"))}
    expected = dict(line.split("\t", 1) for line in pathlib.Path(known).read_text().splitlines()
                    if line and not line.startswith("#"))
    passed = failed = excluded = 0
    surprises, groups, lines = [], [], []
    for path in sorted(tests.rglob("*.json")):
        file = str(path.relative_to(tests))
        # Numbers as they are written.
        text = path.read_text()
        for group in json.loads(text, parse_float=Digits, parse_int=Digits):
            name = f"{file}: {group['description'].strip()}"
            schema = encode(group["schema"])
            if is_excluded(schema):
                excluded += 1
                continue
            # The draft lets `format` be a remark only, and the suite has its files for both.
            formats = file.startswith(("optional/format/", "optional/format-assertion"))
            remotes = files if ADDRESS in schema else {}
            data = "[" + ",".join(encode(test["data"]) for test in group["tests"]) + "]"
            groups.append((name, group["tests"]))
            lines.append(f'{{"schema":{schema},"data":{data},"formats":{json.dumps(formats)},'
                         f'"files":{json.dumps(remotes)}}}\n')
    run = subprocess.run([program], input="".join(lines), stdout=subprocess.PIPE, text=True, check=True)
    for (name, cases), answer in zip(groups, run.stdout.splitlines(), strict=True):
        answer = json.loads(answer)
        wrong = [answer] if isinstance(answer, str) else [
            case["description"] for case, found in zip(cases, answer) if case["valid"] != found]
        passed, failed = passed + (not wrong), failed + bool(wrong)
        if wrong and name not in expected:
            surprises.append(f"{name}: {'; '.join(wrong)}")
        elif not wrong and name in expected:
            surprises.append(f"{name}: passes, and is listed as failing")
    share = 100 * passed / (passed + failed)
    print(f"{passed} of {passed + failed} groups pass ({share:.1f} %); "
          f"{excluded} with $dynamicRef or a reference to the network are left out")
    for surprise in surprises:
        print(f"unexpected: {surprise}")
    sys.exit(1 if surprises or share < 97 else 0)


def is_excluded(schema):
    return "$dynamic" in schema or '"$ref":"https://json-schema.org/' in schema


class Digits(str):
    """A number, as it is written."""


def encode(value):
    if isinstance(value, Digits):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(k)}:{encode(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(encode(v) for v in value) + "]"
    return json.dumps(value)


main()
