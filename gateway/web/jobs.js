// A question that is queued: followed until it has ended, also after the page was loaded again.

import { job, Refusal } from "./door.js";

const KEY = "sluice.job";
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 8_000;
const ENDED = new Set(["done", "failed", "expired", "cancelled", "superseded"]);

/** The job that this tab follows, if it follows one. */
export function followed() {
  return sessionStorage.getItem(KEY);
}

export function remember(id) {
  sessionStorage.setItem(KEY, id);
}

export function forgetJob() {
  sessionStorage.removeItem(KEY);
}

export function hasEnded(found) {
  return ENDED.has(found.state);
}

/** The job as it is now and then, at last as it ended. What is only away for a while is waited for. */
export async function* progress(id, signal) {
  for (let pause = FIRST_PAUSE; ; pause = Math.min(pause * 1.5, LONGEST_PAUSE)) {
    const found = await lookAt(id, signal);
    if (found) yield found;
    if (found && hasEnded(found)) return;
    await passing(pause, signal);
  }
}

async function lookAt(id, signal) {
  try {
    return await job(id, signal);
  } catch (error) {
    const away = error instanceof Refusal ? error.status >= 500 : error instanceof TypeError;
    if (away && !signal.aborted) return null;
    throw error;
  }
}

function passing(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
