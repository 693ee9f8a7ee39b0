#!/usr/bin/env python3
"""Checks the shape of the sources; scripts/lint calls it.

No struct, class or actor has more than 15 stored fields, but for those that docs/architecture.md names with the reason; and of all
functions together half have at most 7 lines, nine tenths at most 25.
"""

import os
import re
import statistics
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MOST_FIELDS = 15
WORDS = (
    r'(?:@\S+(?:\([^)]*\))? )*(?:(?:public|package|internal|fileprivate|private|final|indirect|unowned\S*|weak|lazy|nonisolated\S*'
    r'|override|required|convenience|mutating|nonmutating|consuming|borrowing|(?:private|fileprivate|package|internal)\(set\)) )*'
)
TYPE = re.compile(r'( *)' + WORDS + r'(?:struct|class|actor) (\w+).*\{$')
FIELD = re.compile(WORDS + r'(?:let|var) (\w+|\([^)]*\))(.*)')
FUNCTION = re.compile(r'( *)' + WORDS + r'(?:static )?' + WORDS + r'(?:func |init[?(<]|subscript)')


def sources():
    for directory, _, names in os.walk(os.path.join(ROOT, 'Sources')):
        for name in sorted(names):
            if name.endswith('.swift'):
                path = os.path.join(directory, name)
                with open(path, encoding='utf-8') as file:
                    yield os.path.relpath(path, ROOT), file.read().split('\n')


def body(lines, start, indent):
    """The lines between the one that opens a block and the one that closes it."""
    end = start + 1
    while end < len(lines) and lines[end] != indent + '}':
        end += 1
    return lines[start + 1 : end]


def field_count(lines, indent):
    count = 0
    for index, line in enumerate(lines):
        if not line.startswith(indent + '    ') or line.startswith(indent + '     '):
            continue
        field = FIELD.match(line.strip())
        if not field:
            continue
        names, rest = field.groups()
        # A block without `=` before it computes the value, unless it only observes the changes of a stored one.
        following = lines[index + 1] if index + 1 < len(lines) else ''
        if '{' in rest and '=' not in rest.split('{')[0] and 'didSet' not in rest + following:
            continue
        count += names.count(',') + 1
    return count


def function_length(lines, start):
    """How many lines the body has; nil for a declaration without one."""
    opening = start
    while not lines[opening].rstrip().endswith(('{', '}')):
        opening += 1
        if opening - start > 25 or opening == len(lines) or not lines[opening].strip():
            return None
    if lines[opening].rstrip().endswith('}'):
        return 1
    return len(body(lines, opening, re.match(' *', lines[start]).group()))


def main():
    with open(os.path.join(ROOT, 'docs/architecture.md'), encoding='utf-8') as file:
        section = re.search(r'## Types with more than 15 stored fields\n(.*?)\n## ', file.read(), re.S).group(1)
    named = set(re.findall(r'^- `(?:\w+\.)*(\w+)`', section, re.M))
    found, lengths, faults = set(), [], []
    for path, lines in sources():
        for index, line in enumerate(lines):
            kind = TYPE.match(line)
            if kind:
                indent, name = kind.groups()
                count = field_count(body(lines, index, indent), indent)
                if count > MOST_FIELDS:
                    found.add(name)
                    if name not in named:
                        faults.append(f'{path}:{index + 1}: {name} has {count} stored fields: group some, or give the reason in '
                                      'docs/architecture.md')
            if FUNCTION.match(line):
                length = function_length(lines, index)
                if length is not None:
                    lengths.append(length)
    faults += [f'docs/architecture.md: {name} has no more than {MOST_FIELDS} stored fields' for name in sorted(named - found)]
    lengths.sort()
    median, tenth = statistics.median(lengths), lengths[len(lengths) * 9 // 10]
    if median > 7 or tenth > 25:
        faults.append(f'functions have {median} lines in the median and {tenth} at nine tenths; 7 and 25 at most')
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f'shape: {len(lengths)} functions, {median:.0f} lines in the median, {tenth} at nine tenths; '
          f'{len(found)} types with more than {MOST_FIELDS} stored fields, all with a reason')
    return 1 if faults else 0


sys.exit(main())
