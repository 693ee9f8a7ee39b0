"""Random schemas and values, checked by schemacheck and by Python's jsonschema: for scripts/fuzz schema.

Usage: fuzz_schema.py SCHEMACHECK PAIRS SEED
"""

import json
import random
import subprocess
import sys

import jsonschema

VALUES = 20
NAMES = ["a", "b", "ab", "c", "é", "x1", ""]
PATTERNS = ["^a", "b", "^.$", "[0-9]", "^$", "^(a|b)+$", "\\d", "é"]
SCALARS = [None, True, False, 0, 1, 2, 3, -1, 1.0, 1.5, 2.5, 10, 0.5, "", "a", "b", "ab", "abc", "é", "12", "x1"]
DEFINITIONS = 4


def main():
    program, pairs, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    chance = random.Random(seed)
    schemas, lines, expected = [], [], []
    for _ in range(pairs // VALUES):
        schema = root(chance)
        values = [value(chance, 3) for _ in range(VALUES)]
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema)
        schemas.append((schema, values))
        expected.append([validator.is_valid(v) for v in values])
        lines.append(json.dumps({"schema": schema, "data": values}) + "\n")
    run = subprocess.run([program], input="".join(lines), stdout=subprocess.PIPE, text=True, check=True)
    differences = valid = 0
    for (schema, values), theirs, ours in zip(schemas, expected, map(json.loads, run.stdout.splitlines()),
                                              strict=True):
        valid += sum(theirs)
        if ours == theirs:
            continue
        differences += 1
        if differences > 5:
            continue
        if isinstance(ours, str):
            print(f"refused: {ours}\n  {json.dumps(schema)}")
            continue
        wrong = next(i for i in range(VALUES) if ours[i] != theirs[i])
        print(f"jsonschema says {theirs[wrong]}, schemacheck {ours[wrong]}: {json.dumps(values[wrong])}\n"
              f"  {json.dumps(schema)}")
    print(f"schema: {len(schemas) * VALUES} pairs, {valid} valid, {differences} differences, seed {seed}")
    sys.exit(1 if differences else 0)


def root(chance):
    result = schema(chance, 3, 0)
    while not isinstance(result, dict):
        result = schema(chance, 3, 0)
    result["$defs"] = {f"d{i}": schema(chance, 2, i) for i in range(1, DEFINITIONS)}
    return result


def schema(chance, depth, level):
    """A schema; in one of a definition, only later definitions may apply to the same value."""
    if depth == 0 or chance.random() < 0.08:
        return chance.choice([True, False, {}, {"type": kind(chance)}, {"const": chance.choice(SCALARS)}])

    def same():
        return schema(chance, depth - 1, level)

    def part():
        if chance.random() < 0.2:
            return {"$ref": f"#/$defs/d{chance.randrange(1, DEFINITIONS)}"}
        return schema(chance, depth - 1, level)

    def count():
        return chance.randrange(0, 4)

    def members():
        return {name: part() for name in chance.sample(NAMES, chance.randrange(1, 4))}

    def names():
        return chance.sample(NAMES, chance.randrange(0, 3))

    def several(make):
        return [make() for _ in range(chance.randrange(1, 4))]

    makers = {
        "type": lambda: kind(chance) if chance.random() < 0.7 else chance.sample(KINDS, 2),
        "enum": lambda: [value(chance, 1) for _ in range(chance.randrange(1, 5))],
        "const": lambda: value(chance, 2),
        "minimum": lambda: chance.choice([0, 1, 1.5, -1]),
        "maximum": lambda: chance.choice([0, 1, 2.5, 10]),
        "exclusiveMinimum": lambda: chance.choice([0, 1, 1.5]),
        "exclusiveMaximum": lambda: chance.choice([1, 2, 2.5]),
        "multipleOf": lambda: chance.choice([1, 2, 0.5, 3]),
        "minLength": count, "maxLength": count, "minItems": count, "maxItems": count,
        "minProperties": count, "maxProperties": count,
        "pattern": lambda: chance.choice(PATTERNS),
        "required": names,
        "properties": members, "additionalProperties": part,
        "patternProperties": lambda: {p: part() for p in chance.sample(PATTERNS, chance.randrange(1, 3))},
        "propertyNames": same,
        "dependentRequired": lambda: {n: names() for n in chance.sample(NAMES, 2)},
        "dependentSchemas": lambda: {n: same() for n in chance.sample(NAMES, 2)},
        "items": part, "prefixItems": lambda: several(part), "contains": part,
        "minContains": count, "maxContains": count,
        "uniqueItems": lambda: chance.random() < 0.8,
        "allOf": lambda: several(same), "anyOf": lambda: several(same), "oneOf": lambda: several(same),
        "not": same, "if": same, "then": same, "else": same,
        "unevaluatedItems": part, "unevaluatedProperties": part,
    }
    result = {name: makers[name]() for name in chance.sample(sorted(makers), chance.randrange(1, 5))}
    if level + 1 < DEFINITIONS and chance.random() < 0.2:
        result["$ref"] = f"#/$defs/d{chance.randrange(level + 1, DEFINITIONS)}"
    return result


KINDS = ["null", "boolean", "integer", "number", "string", "array", "object"]


def kind(chance):
    return chance.choice(KINDS)


def value(chance, depth):
    if depth == 0 or chance.random() < 0.3:
        return chance.choice(SCALARS)
    if chance.random() < 0.4:
        return [value(chance, depth - 1) for _ in range(chance.randrange(0, 4))]
    return {name: value(chance, depth - 1) for name in chance.sample(NAMES, chance.randrange(0, 4))}


main()
