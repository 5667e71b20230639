"""Office formulas as one line of text, for Word's converter passes over them."""

from collections.abc import Callable, Iterator
from xml.etree.ElementTree import Element

MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
FORMULA = f"{MATH}oMath"


def linear(formula: Element) -> str:
    """The formula in the order in which it is read aloud, such as (a)/(b) or x^(2)."""
    return "".join(_parts(formula))


def _parts(node: Element) -> Iterator[str]:
    for child in node:
        name = child.tag.removeprefix(MATH)
        if name == "t":
            yield child.text or ""
        elif write := _WRITTEN.get(name):
            yield write(child)
        else:
            yield from _parts(child)


def _part(node: Element, name: str) -> str:
    found = node.find(f"{MATH}{name}")
    return linear(found) if found is not None else ""


def _group(node: Element, name: str) -> str:
    text = _part(node, name)
    return text if len(text) == 1 else f"({text})"


def _fraction(node: Element) -> str:
    return f"{_group(node, 'num')}/{_group(node, 'den')}"


def _power(node: Element) -> str:
    return f"{_part(node, 'e')}^{_group(node, 'sup')}"


def _index(node: Element) -> str:
    return f"{_part(node, 'e')}_{_group(node, 'sub')}"


def _both(node: Element) -> str:
    return f"{_index(node)}^{_group(node, 'sup')}"


def _root(node: Element) -> str:
    degree = _part(node, "deg")
    return f"√{degree and f'[{degree}]'}({_part(node, 'e')})"


def _brackets(node: Element) -> str:
    inside = ", ".join(linear(part) for part in node.findall(f"{MATH}e"))
    return f"{_bracket(node, 'begChr', '(')}{inside}{_bracket(node, 'endChr', ')')}"


def _bracket(node: Element, name: str, usual: str) -> str:
    found = node.find(f"{MATH}dPr/{MATH}{name}")
    return usual if found is None else found.get(f"{MATH}val", usual)


def _sum(node: Element) -> str:
    sign = node.find(f"{MATH}naryPr/{MATH}chr")
    symbol = "∫" if sign is None else sign.get(f"{MATH}val", "∫")
    return f"{symbol}_{_group(node, 'sub')}^{_group(node, 'sup')} {_part(node, 'e')}"


_WRITTEN: dict[str, Callable[[Element], str]] = {
    "f": _fraction,
    "sSup": _power,
    "sSub": _index,
    "sSubSup": _both,
    "rad": _root,
    "d": _brackets,
    "nary": _sum,
}
