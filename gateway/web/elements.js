// Elements are made of text: no string is ever read as markup.

export function byId(id) {
  return document.getElementById(id);
}

export function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** Pairs of a name and a value as a description list's rows; pairs without a value are left out. */
export function rows(pairs) {
  return pairs
    .filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([name, value]) =>
      element("div", {}, element("dt", {}, name), element("dd", { dir: "auto" }, value)),
    );
}

export function show(target, text) {
  target.textContent = text;
  target.hidden = !text;
}
