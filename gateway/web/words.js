// What the page says in plain words.

const MODEL_IS_OUT = new Set(["MODEL_UNAVAILABLE", "CAPACITY"]);

const PASSING = new Set([...MODEL_IS_OUT, "RETRIEVAL_UNAVAILABLE", "DEADLINE"]);

const HEADLINES = {
  GENERATED: "Answer",
  EXTRACTIVE: "Quoted from the documents",
  PREVIOUS: "An earlier answer",
  QUEUED: "Accepted, to be answered later",
  ABSTAINED: "The documents do not answer this",
};

const WITHDRAWN = {
  INVALID_OUTPUT: "it did not hold against the sources",
  INTERRUPTED: "the model stopped before its end",
  REFUSED: "the model or its filter refused",
  DEADLINE: "the time was over",
  EVIDENCE_CHANGED: "its evidence changed, or could not be confirmed",
};

const SWITCHED = {
  UNAVAILABLE: "the first choice did not answer",
  CAPACITY: "the first choice's allowance was used up",
  TIMEOUT: "the first choice took too long",
  INVALID_OUTPUT: "the first choice's answer did not hold",
};

const SCORE_SPACES = {
  COSINE: "cosine similarity",
  BM25: "by words",
  RRF: "by rank",
  MIN_MAX: "of words and meaning",
};

// While it runs, and when it has ended, well or not.
const STAGES = {
  retrieve: ["Searching the documents", "Search"],
  assemble: ["Choosing the evidence", "Evidence"],
  generate: ["Writing and checking", "Writing"],
  queued: ["Waiting for its turn", "Waited"],
  running: ["Being answered", "Attempt"],
};

const JOB_ENDS = {
  failed: ["No answer could be made", "This question could not be answered."],
  expired: ["Not answered in time", "The time for this question is over. Ask it again."],
  cancelled: ["Cancelled", "You cancelled this question."],
  superseded: ["Replaced", "Another question took the place of this one."],
};

const REFUSALS = {
  401: "You are not signed in",
  403: "You may not do this",
  429: "You have asked too often",
  503: "Not possible right now",
  504: "No answer in time",
};

export function headline(answer) {
  if (answer.acceptance === "REVIEW_REQUIRED") return "An answer that a person has to check";
  if (answer.mode !== "UNAVAILABLE") return HEADLINES[answer.mode] ?? answer.mode;
  if (answer.reason === "RETRIEVAL_UNAVAILABLE") return "The documents cannot be searched now";
  const missing = MODEL_IS_OUT.has(answer.reason)
    ? "AI answers are unavailable"
    : "No answer could be made";
  return answer.sources.length ? `${missing}; these are the matching passages` : missing;
}

export function withdrawal(reason) {
  const why = WITHDRAWN[reason] ?? "it did not hold";
  return `The text shown so far is withdrawn: ${why}.`;
}

/** Title and sentence for a job that ended without an answer. */
export function jobEnd(found) {
  return JOB_ENDS[found.state] ?? ["No answer", "This question has no answer."];
}

export function refusalTitle({ status, title }) {
  return REFUSALS[status] ?? title;
}

/** Whether an answer may be had later of what cannot be answered now. */
export function isPassing(answer) {
  return answer.mode === "UNAVAILABLE" && PASSING.has(answer.reason);
}

export function switched(reason) {
  return reason && (SWITCHED[reason] ?? reason);
}

/** A stage's name while it runs, and when it has ended. */
export function stage(name) {
  return STAGES[name] ?? [name, name];
}

export function sentence(text) {
  return text && `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}

export function duration(milliseconds) {
  if (milliseconds < 10) return `${milliseconds.toFixed(1)} ms`;
  if (milliseconds < 1_000) return `${Math.round(milliseconds)} ms`;
  return `${(milliseconds / 1_000).toFixed(milliseconds < 10_000 ? 2 : 1)} s`;
}

export function age(seconds) {
  const units = [[86_400, "days"], [3_600, "h"], [60, "min"]];
  const [length, name] = units.find(([unit]) => seconds >= 2 * unit) ?? [1, "s"];
  return `${Math.floor(seconds / length)} ${name}`;
}

export function count(number) {
  return new Intl.NumberFormat("en").format(Math.round(number));
}

/** A score with what it measures, such as "0.912 (cosine similarity)". */
export function score(value, space) {
  const name = SCORE_SPACES[space] ?? space;
  return name ? `${value.toFixed(3)} (${name})` : value.toFixed(3);
}
