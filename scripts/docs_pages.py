"""The pages of the manual, and what is checked without running anything. Used by scripts/check-docs."""

import datetime
import glob
import os
import re
import textwrap

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COLUMNS = 120
README_BYTES = 10_240
WORDS = """
    told tells hears graves? bury buries buried exhumed? exhumes ceilings? lends seats? astray for.ever where.there.is.none
    that.is.none wanted.are is.no.value read.it.again
""".split()
LANGUAGES = "console json5 json python swift text ini c diff xml yaml make".split()


class Block:
    def __init__(self, language, line):
        self.language, self.line, self.lines = language, line, []


class Page:
    """A Markdown file: its lines, and its blocks of code."""

    def __init__(self, name):
        self.name = name
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            self.text = file.read()
        self.prose, self.blocks, fence = [], [], None
        for number, line in enumerate(self.text.split("\n"), 1):
            opening = re.match(r"\s*(`{3,}|~{3,})\s*(\S*)", line)
            if fence is None and opening:
                fence = opening[1]
                self.blocks.append(Block(opening[2], number))
            elif fence is not None and line.strip() == fence:
                fence = None
            elif fence is not None:
                self.blocks[-1].lines.append(line)
            else:
                self.prose.append((number, line))

    def of(self, language):
        return [block for block in self.blocks if block.language == language]

    def anchors(self):
        """The anchors of its headings, as GitHub makes them."""
        found, counts = set(), {}
        for _, line in self.prose:
            if heading := re.match(r"#{1,6} +(.*?)[ #]*$", line):
                text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading[1])
                slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
                count = counts[slug] = counts.get(slug, -1) + 1
                found.add(f"{slug}-{count}" if count else slug)
            found.update(re.findall(r'<a (?:id|name)="([^"]+)"', line))
        return found


def all_pages():
    names = ["README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md"]
    names += sorted(glob.glob("docs/**/*.md", root_dir=ROOT, recursive=True))
    names += sorted(glob.glob("Sources/*/*.docc/*.md", root_dir=ROOT))
    return [name for name in names if os.path.exists(os.path.join(ROOT, name))]


def check_form(page):
    """The failures of a page that can be seen without running anything."""
    for number, line in page.prose:
        if len(line) > COLUMNS and not line.lstrip().startswith("|"):
            yield number, f"{len(line)} columns; {COLUMNS} at most"
    if page.name == "README.md" and (size := len(page.text.encode())) > README_BYTES:
        yield 1, f"{size} bytes; {README_BYTES} at most"
    for block in page.blocks:
        if block.language not in LANGUAGES:
            kinds = ", ".join(LANGUAGES)
            yield block.line, f"a block of code is one of {kinds}; not '{block.language}'"
    yield from check_links(page)
    if page.name.startswith("docs/decisions/") and page.name != "docs/decisions/README.md":
        yield from check_decision(page)


def check_decision(page):
    """A page of decisions has two dates, and claims about the source that hold; docs/decisions/README.md has the forms."""
    text = " ".join(page.text.split())
    dates = re.search(r"Decided (\S+), reviewed (\S+)\. ", text)
    try:
        decided, reviewed = map(datetime.date.fromisoformat, dates.groups() if dates else ())
        if decided > reviewed:
            yield 1, f"reviewed on {reviewed}, before it was decided"
    except ValueError:
        yield 1, "the page lacks a line 'Decided YYYY-MM-DD, reviewed YYYY-MM-DD.'"
    claims = re.findall(r"Checked: (the test )?`([^`]+)` is (not )?in `([^`]+)`\.", text)
    if not claims or len(claims) != text.count("Checked: "):
        yield 1, "each decision has lines 'Checked: …' in the forms of docs/decisions/README.md"
    for test, words, negation, place in claims:
        sources = list(swift_sources(place))
        if not sources:
            yield 1, f"checked: there is no Swift file {place}"
        elif any((f"func `{words}`" if test else words) in source for source in sources) == bool(negation):
            yield 1, f"checked, and false: {test}'{words}' is {negation}in {place}; compare the page with the code"


def swift_sources(place):
    """The texts of a Swift file, or of all those in a folder."""
    path = os.path.join(ROOT, place)
    for name in [path] if path.endswith(".swift") else sorted(glob.glob(os.path.join(path, "**/*.swift"), recursive=True)):
        if os.path.exists(name):
            with open(name, encoding="utf-8") as file:
                yield file.read()


def check_links(page):
    prose = "\n".join(re.sub(r"`[^`]*`", lambda code: " " * len(code[0]), line) for _, line in page.prose)
    for link in re.finditer(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|^\[[^]]+\]:\s*(\S+)", prose, re.M):
        target = link[1] or link[2]
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        number = page.prose[prose.count("\n", 0, link.start())][0]
        found = os.path.normpath(os.path.join(os.path.dirname(page.name), path)) if path else page.name
        if found.startswith("..") or not os.path.exists(os.path.join(ROOT, found)):
            yield number, f"the link {target} leads nowhere"
        elif anchor and (not found.endswith(".md") or anchor not in Page(found).anchors()):
            yield number, f"the link {target} leads nowhere: {found} has no such heading"


def wrapped(page):
    """The text of a page, with paragraphs that have a line that is too long broken anew."""
    prose, lines, paragraph = dict(page.prose), [], []

    def finish():
        if any(len(line) > COLUMNS for line in paragraph):
            marker = re.match(r"\s*([-*+] +|\d+[.)] +|> *)?", paragraph[0])[0]
            text = " ".join(line.strip() for line in paragraph)
            # Code stays on one line, and no line may begin like a list or a heading.
            text = re.sub(r"`[^`]*`", lambda code: code[0].replace(" ", "\0"), text)
            text = re.sub(r" (?=([-*+>#|]+|\d+[.)]) )", "\0", text)
            indent = re.match(r"\s*", paragraph[0])[0]
            broken = textwrap.wrap(
                indent + text, COLUMNS, subsequent_indent=" " * len(marker), break_long_words=False, break_on_hyphens=False,
            )
            lines.extend(line.replace("\0", " ") for line in broken)
        else:
            lines.extend(paragraph)
        paragraph.clear()

    for number, line in enumerate(page.text.split("\n"), 1):
        begins = re.match(r"\s*([-*+] |\d+[.)] )", line)
        if number not in prose or not line.strip() or re.match(r"\s*(\||#|>|\[[^]]+\]:|```|~~~)", line):
            finish()
            lines.append(line)
            continue
        if begins:
            finish()
        paragraph.append(line)
    finish()
    return "\n".join(lines)


def check_words(page):
    pattern = r"\b(" + "|".join(word.replace(".", r"\s+") for word in WORDS) + r")\b"
    for word in re.finditer(pattern, page.text, re.IGNORECASE):
        yield page.text.count("\n", 0, word.start()) + 1, f"a word that the manual does without: '{word[0]}'"
