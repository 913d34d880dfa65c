"""Reading the pages that reports are: what they load, whether their tags match, what they say."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = {"meta", "br", "rect", "line", "circle", "path"}


@dataclass
class Page(HTMLParser):
    """A page by its elements and its text; fails on an end that has no beginning."""

    html: str
    elements: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)

    def __post_init__(self):
        super().__init__()
        self.feed(self.html)
        self.close()
        assert self.open == [], f"these were not closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice: {names}"
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> in <{self.open}>"

    def handle_data(self, data):
        if "style" not in self.open and data.strip():
            self.text.append(" ".join(data.split()))

    def of(self, tag):
        """The attributes of every element of this name."""
        return [attributes for name, attributes in self.elements if name == tag]

    def loaded(self):
        """What a browser would fetch, or run."""
        found = [
            tag for tag, _ in self.elements if tag in ("script", "link", "img", "iframe", "object", "image", "use")
        ]
        for tag, attributes in self.elements:
            for name, value in attributes.items():
                if name.startswith("on") or (name in ("src", "href", "xlink:href", "style") and value[:1] != "#"):
                    found.append(f"{tag} {name}={value}")
        return found + [word for word in ("url(", "@import") if word in self.html]
