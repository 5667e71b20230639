// The live levels of the gateway and of the provider's pools, for operators.

import { capacity, Refusal } from "./door.js";
import { byId, element } from "./elements.js";
import { Plot } from "./plot.js";
import { count } from "./words.js";

const PERIOD_MILLISECONDS = 1_000;
const LIMIT_MILLISECONDS = 5_000;

const MODES = {
  shared: "shared by all processes",
  local_share: "Redis is out of reach; this is this gateway's own share",
  closed: "Redis is out of reach, and this gateway has no share of its own",
};

let groups = new Map();
let refusedBefore = null;

/** Show the panel if the caller may see it. Throws the gateway's refusal of who has no sign-in. */
export async function look() {
  const panel = byId("capacity");
  panel.open = false;
  try {
    await levels();
    panel.hidden = false;
  } catch (error) {
    panel.hidden = true;
    if (error instanceof Refusal && error.status === 401) throw error;
  }
}

async function levels() {
  draw(await capacity(AbortSignal.timeout(LIMIT_MILLISECONDS)));
}

export function watchWhileOpen() {
  const panel = byId("capacity");
  let control = new AbortController();
  panel.addEventListener("toggle", () => {
    control.abort();
    control = new AbortController();
    if (panel.open) watch(control.signal);
  });
}

async function watch(signal) {
  while (!signal.aborted) {
    const seen = document.hidden || (await isSeen());
    byId("levels").classList.toggle("stale", !seen);
    await new Promise((done) => setTimeout(done, PERIOD_MILLISECONDS));
  }
}

/** Whether the levels could be drawn again. Who may no longer see them loses the panel. */
async function isSeen() {
  try {
    await levels();
    return true;
  } catch (error) {
    if (error instanceof Refusal && (error.status === 401 || error.status === 403)) {
      byId("capacity").open = false;
      byId("capacity").hidden = true;
    }
    return false;
  }
}

function draw({ gateway, pools }) {
  const names = ["This gateway", ...pools.map(({ name }) => name)];
  if (names.join() !== [...groups.keys()].join()) begin(names);
  drawGateway(groups.get("This gateway"), gateway);
  for (const pool of pools) drawPool(groups.get(pool.name), pool);
}

function begin(names) {
  groups = new Map(names.map((name) => [name, new Group(name)]));
  refusedBefore = null;
  byId("levels").replaceChildren(...[...groups.values()].map((group) => group.section));
}

function drawGateway(group, found) {
  const { in_flight, max_in_flight, shared_in_flight, shared_max_in_flight } = found;
  group.plot("Questions in flight", in_flight, of(in_flight, max_in_flight), max_in_flight);
  if (shared_in_flight !== null) {
    const text = of(shared_in_flight, shared_max_in_flight);
    group.plot("In all gateways", shared_in_flight, text, shared_max_in_flight);
  }
  const refused = Object.values(found.refusals).reduce((sum, number) => sum + number, 0);
  group.plot("Refused each second", refused - (refusedBefore ?? refused), `${count(refused)} in all`);
  refusedBefore = refused;
  const byReason = Object.entries(found.refusals).map(([why, number]) => `${why} ${count(number)}`);
  group.say([MODES[found.mode], found.waiting && `${found.waiting} waiting`, ...byReason]);
}

function drawPool(group, found) {
  const { requests, tokens, places } = found.pool;
  group.plot("Requests left", requests.level, of(requests.level, requests.size), requests.size);
  group.plot("Tokens left", tokens.level, of(tokens.level, tokens.size), tokens.size);
  const { interactive = 0, batch = 0 } = found.in_flight;
  const text = `${of(interactive + batch, places)}${batch ? `, ${batch} of them batch` : ""}`;
  group.plot("Attempts in flight", interactive + batch, text, places);
  group.say([
    MODES[found.mode],
    found.mode !== "closed" &&
      `${count(requests.limit)} requests and ${count(tokens.limit)} tokens a minute`,
    found.waiting && `${found.waiting} promised a start`,
    found.cooldown && `cooling down for ${found.cooldown.toFixed(1)} s after a throttle`,
    found.opens_in && `opens in ${found.opens_in.toFixed(1)} s`,
    found.ramp < 1 && `refills at ${Math.round(100 * found.ramp)} %`,
  ]);
}

function of(part, whole) {
  return `${count(part)} of ${count(whole)}`;
}

/** The plots of one pool, or of the gateway, and a line on how it is. */
class Group {
  #plots = new Map();
  #drawings = element("div", { className: "plots" });
  #line = element("p", { className: "hint" });

  constructor(name) {
    this.section = element("section", {}, element("h3", {}, name), this.#line, this.#drawings);
  }

  plot(title, value, text, most) {
    if (!this.#plots.has(title)) {
      const plot = new Plot(title);
      this.#plots.set(title, plot);
      this.#drawings.append(plot.figure);
    }
    this.#plots.get(title).add(value, text, most);
  }

  say(parts) {
    this.#line.textContent = parts.filter(Boolean).join(" \u00b7 ");
  }
}
