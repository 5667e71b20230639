// The gateway's routes as the page uses them.

import { eventsIn } from "./events.js";
import { held } from "./token.js";

/** Why a request was refused: the gateway's problem, or what stands in for it. */
export class Refusal extends Error {
  constructor(problem, requestId) {
    super(problem.detail);
    this.status = problem.status;
    this.title = problem.title;
    this.reason = problem.reason;
    this.retryAfter = problem.retry_after;
    this.requestId = problem.request_id ?? requestId;
  }
}

/** The events of an answer while it comes about; the last one is `answer` or `error`. */
export async function* ask(question, signal) {
  const response = await call("v1/answers", {
    method: "POST",
    headers: { Accept: "text/event-stream", "Content-Type": "application/json" },
    body: JSON.stringify({ question }),
    signal,
  });
  yield* eventsIn(response.body);
}

/** The answer that says as which job the question is queued. */
export async function queue(question, signal) {
  const response = await call("v1/answers", {
    method: "POST",
    headers: { "Content-Type": "application/json", Prefer: "respond-async" },
    body: JSON.stringify({ question }),
    signal,
  });
  return response.json();
}

/** A job as it is now. */
export async function job(id, signal) {
  const response = await call(`v1/jobs/${encodeURIComponent(id)}`, { signal });
  return response.json();
}

/** End a job, if it has not ended yet. */
export async function cancelJob(id) {
  await call(`v1/jobs/${encodeURIComponent(id)}`, { method: "DELETE" });
}

/** What can be had now. */
export async function status() {
  const response = await call("v1/status", {});
  return response.json();
}

/** What is left of every allowance. */
export async function capacity(signal) {
  const response = await call("v1/capacity", { signal });
  return response.json();
}

async function call(path, options) {
  const token = held();
  const headers = { ...options.headers, ...(token && { Authorization: `Bearer ${token}` }) };
  // A proxy whose sign-in has ended sends elsewhere, where the page must not follow.
  const response = await fetch(path, { ...options, headers, redirect: "manual" });
  if (!response.ok) throw await refusalOf(response);
  return response;
}

async function refusalOf(response) {
  const requestId = response.headers.get("X-Request-Id");
  const kind = response.headers.get("Content-Type") ?? "";
  if (kind.startsWith("application/problem+json")) {
    return new Refusal(await response.json(), requestId);
  }
  if (response.type === "opaqueredirect" || response.status === 401) {
    const detail = "Your sign-in has ended. Load the page again to sign in.";
    return new Refusal({ status: 401, title: "Signed out", reason: "SIGNED_OUT", detail });
  }
  const detail = `The gateway was not reached: something in between answered ${response.status}.`;
  return new Refusal({ status: response.status, title: "No answer", detail }, requestId);
}
