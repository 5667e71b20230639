// One figure over the last two minutes, as an area under a line.

import { element } from "./elements.js";

const SAMPLES = 120;
const SVG = "http://www.w3.org/2000/svg";

export class Plot {
  #values = [];
  #most = 0;
  #text = element("span", { className: "value" });
  #area = shape("area");
  #line = shape("line");

  constructor(title) {
    const drawing = document.createElementNS(SVG, "svg");
    drawing.setAttribute("viewBox", `0 0 ${SAMPLES - 1} 100`);
    drawing.setAttribute("preserveAspectRatio", "none");
    drawing.setAttribute("aria-hidden", "true"); // the caption says the figure
    drawing.append(this.#area, this.#line);
    const caption = element("figcaption", {}, element("span", {}, title), " ", this.#text);
    this.figure = element("figure", {}, caption, drawing);
  }

  /** The next value and what it is of; without `most`, of the highest one seen. */
  add(value, text, most = null) {
    this.#values = [...this.#values, value].slice(-SAMPLES);
    this.#most = most ?? Math.max(1, ...this.#values);
    this.#text.textContent = text;
    this.#draw();
  }

  #draw() {
    const first = SAMPLES - this.#values.length;
    const points = this.#values.map((value, index) => `${first + index},${this.#height(value)}`);
    const line = points.join(" ");
    this.#line.setAttribute("points", line);
    this.#area.setAttribute("points", `${first},100 ${line} ${SAMPLES - 1},100`);
  }

  #height(value) {
    const share = Math.min(1, Math.max(0, value / (this.#most || 1)));
    return (98 - 96 * share).toFixed(2); // the line stays whole at both edges
  }
}

function shape(name) {
  const made = document.createElementNS(SVG, name === "area" ? "polygon" : "polyline");
  made.setAttribute("class", name);
  return made;
}
