"""Preprocessor of mdBook: makes links to files outside docs plain text, because the site does not have these files."""

import json
import posixpath
import re
import sys

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^):#]+)[^)]*\)")


def clean(item: object) -> None:
    """Rewrites the links of a chapter and of those below it."""
    chapter = item.get("Chapter") if isinstance(item, dict) else None
    if not chapter:
        return
    folder = posixpath.dirname(chapter["path"] or "")

    def inside(link: re.Match[str]) -> str:
        outside = posixpath.normpath(posixpath.join(folder, link[2])).startswith("..")
        return link[1] if outside else link[0]

    chapter["content"] = LINK.sub(inside, chapter["content"])
    for below in chapter["sub_items"]:
        clean(below)


if sys.argv[1:2] != ["supports"]:
    _, book = json.load(sys.stdin)
    for entry in book["items"]:
        clean(entry)
    json.dump(book, sys.stdout)
