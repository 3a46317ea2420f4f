"""Markdown tables, and their places in a document.

What a measurement writes stands between two markers, `<!-- begin bench:NAME -->` and `<!-- end bench:NAME -->`. Only that is ever replaced: the text around
it was written by people.
"""
import re

from measure import Failure


def table(head, rows):
    return "\n".join([f"| {' | '.join(head)} |", "|" + "---|" * len(head)] + [f"| {' | '.join(row)} |" for row in rows])


def replace(path, parts):
    """Puts the parts, {name: text}, between their markers. Nothing is written where one has none."""
    text = path.read_text()
    for name, body in parts.items():
        pattern = re.compile(rf"(?s)(<!-- begin bench:{re.escape(name)} -->\n).*?(<!-- end bench:{re.escape(name)} -->)")
        if len(pattern.findall(text)) != 1:
            raise Failure(f"{path} has no place, or several, for '{name}': it needs the lines '<!-- begin bench:{name} -->' and '<!-- end bench:{name} -->'")
        text = pattern.sub(lambda found, body=body: f"{found[1]}{body}\n{found[2]}", text)
    path.write_text(text)
