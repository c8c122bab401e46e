"""Puts a section into a page, between two marks: section.py PAGE SECTION. Without SECTION, prints the section that the page has."""

import sys

BEGIN, END = "<!-- written by tools/gpu-proof.sh host -->\n", "<!-- end of that -->\n"

with open(sys.argv[1], encoding="utf-8") as f:
    page = f.read()
before, _, rest = page.partition(BEGIN)
section, _, after = rest.partition(END)
if len(sys.argv) == 2:
    print(section, end="")
    sys.exit()
with open(sys.argv[2], encoding="utf-8") as f:
    section = f.read()
if section:
    with open(sys.argv[1], "w", encoding="utf-8") as f:
        f.write(before.rstrip("\n") + "\n\n" + BEGIN + section.rstrip("\n") + "\n" + END + after)
