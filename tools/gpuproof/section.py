"""Puts the section of a part, host or tensorrt, into a page, between two marks: section.py PART PAGE SECTION. Without SECTION, prints the section that the page has."""

import sys

part, path = sys.argv[1:3]
BEGIN, END = f"<!-- written by tools/gpu-proof.sh {part} -->\n", "<!-- end of that -->\n"

with open(path, encoding="utf-8") as f:
    page = f.read()
before, _, rest = page.partition(BEGIN)
section, _, after = rest.partition(END)
if len(sys.argv) == 3:
    print(section, end="")
    sys.exit()
with open(sys.argv[3], encoding="utf-8") as f:
    section = f.read()
if section:
    with open(path, "w", encoding="utf-8") as f:
        f.write(before.rstrip("\n") + "\n\n" + BEGIN + section.rstrip("\n") + "\n" + END + after)
