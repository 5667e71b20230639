// The stages of one question, with the time each takes.

import { element } from "./elements.js";
import { duration, stage } from "./words.js";

const TICK_MILLISECONDS = 100;

export class Stages {
  #list;
  #running = new Map();
  #ticking;

  constructor(list) {
    this.#list = list;
    list.replaceChildren();
    this.#ticking = setInterval(() => this.#tick(), TICK_MILLISECONDS);
  }

  /** A stage begins when `milliseconds` is null, and ends otherwise. */
  told({ stage: name, milliseconds }) {
    if (milliseconds === null) this.#begin(name);
    else this.#end(name, milliseconds);
  }

  /** Nothing more will be told. */
  stop() {
    clearInterval(this.#ticking);
    for (const { row } of this.#running.values()) row.className = "stopped";
    this.#running.clear();
  }

  #begin(name) {
    const label = element("span", {}, stage(name)[0]);
    const time = element("span", { className: "time" });
    const row = element("li", { className: "running" }, label, " ", time);
    this.#list.append(row);
    this.#running.set(name, { row, label, time, began: performance.now() });
  }

  #end(name, milliseconds) {
    const found = this.#running.get(name);
    if (!found) return;
    this.#running.delete(name);
    found.row.className = "ended";
    found.label.textContent = stage(name)[1];
    found.time.textContent = duration(milliseconds);
  }

  #tick() {
    for (const { time, began } of this.#running.values()) {
      time.textContent = `${((performance.now() - began) / 1_000).toFixed(1)} s`;
    }
  }
}
