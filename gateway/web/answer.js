// An answer: its text with marks to open, its sources, and how it came about.

import { byId, element, rows, show } from "./elements.js";
import { open } from "./passage.js";
import { age, count, duration, headline, score, sentence, switched } from "./words.js";

// [S1], [S1, S2], and the same in full-width brackets.
const MARK =
  /[[\uff3b\u3010]{1,2}\s*S\d{1,4}(?:\s*[,;\u3001\uff0c\uff1b]\s*S\d{1,4})*\s*[\]\uff3d\u3011]{1,2}/g;
const LABEL = /S\d{1,4}/g;

export function showAnswer(answer) {
  const shown = new Map(answer.sources.map((source) => [source.label, source]));
  byId("headline").textContent = headline(answer);
  show(byId("words"), sentence(answer.message));
  byId("words").classList.toggle("notice", answer.acceptance === "REVIEW_REQUIRED");
  byId("text").hidden = !answer.text;
  byId("text").replaceChildren(...marked(answer, shown));
  showSources(answer);
  showProvenance(answer);
}

function* marked(answer, sources) {
  let at = 0;
  for (const match of answer.text.matchAll(MARK)) {
    const labels = match[0].match(LABEL);
    if (!labels.every((label) => sources.has(label))) continue; // text that only looks like a mark
    yield answer.text.slice(at, match.index);
    yield* labels.map((label) => mark(answer, sources.get(label), match.index));
    at = match.index + match[0].length;
  }
  yield answer.text.slice(at);
}

function mark(answer, source, index) {
  const button = element("button", { type: "button", className: "mark" }, source.label);
  button.setAttribute("aria-label", `${source.label}: ${nameOf(source)}`);
  button.setAttribute("aria-haspopup", "dialog");
  button.addEventListener("click", () => open(source, answer, citedAt(answer, source, index)));
  return button;
}

/** The citation of a source that a place in the text belongs to. Citations count code points. */
function citedAt(answer, source, index) {
  const at = [...answer.text.slice(0, index)].length;
  return answer.citations.find(
    ({ label, start, end }) => label === source.label && start <= at && at < end,
  );
}

function showSources(answer) {
  const cited = Boolean(answer.text);
  byId("evidence").hidden = !answer.sources.length;
  byId("evidence-title").textContent = cited ? "Sources" : "Matching passages";
  const entries = answer.sources.map((source) => entry(source, answer, cited));
  byId("sources").replaceChildren(...entries);
}

function entry(source, answer, cited) {
  const name = element("button", { type: "button", className: "plain", dir: "auto" });
  name.textContent = nameOf(source);
  name.setAttribute("aria-haspopup", "dialog");
  name.addEventListener("click", () => open(source, answer));
  const top = element("p", { className: "source-top" }, label(source), name, ...warnings(source));
  const place = element("p", { className: "hint", dir: "auto" }, placeOf(source, answer));
  const text = element("div", { className: "document-text", dir: "auto" }, source.included_text);
  return element("li", {}, top, place, ...(cited ? [] : [text]));
}

function label(source) {
  return element("span", { className: "label" }, source.label);
}

function warnings(source) {
  const level = element("span", { className: "badge" }, source.access_level);
  level.dataset.level = source.access_level;
  if (!source.suspected_injection) return [level];
  return [level, element("span", { className: "badge bad" }, "addresses the model")];
}

function placeOf(source, answer) {
  const version = source.version && `version ${source.version}`;
  const valued = `score ${score(source.score, answer.score_space)}`;
  return [source.heading_path.join(" \u203a "), version, valued].filter(Boolean).join(" \u00b7 ");
}

function nameOf(source) {
  return source.title || source.document_id;
}

function showProvenance(answer) {
  const { usage, provenance, timings } = answer;
  const summary = [
    duration(timings.total),
    tokens(usage.input_tokens, "tokens in"),
    tokens(usage.output_tokens, "tokens out"),
    usage.model || "no model asked",
  ];
  const panel = byId("provenance");
  panel.hidden = false;
  panel.querySelector("summary").textContent = summary.filter(Boolean).join(" \u00b7 ");
  const cached = provenance.cached_age_seconds;
  panel.querySelector("dl").replaceChildren(
    ...rows([
      ...times(timings),
      ["Tokens in", tokens(usage.input_tokens)],
      ["Tokens out", tokens(usage.output_tokens)],
      ["Attempts", String(usage.attempts)],
      ["Model", usage.model],
      ["Served by", provenance.candidate],
      ["Not the first choice", switched(provenance.switch_reason)],
      ["Held to the schema", provenance.schema_constrained ? "yes" : ""],
      ["Repaired", provenance.repaired ? "the first reply broke the contract" : ""],
      ["From the cache", cached === null ? "" : `${age(cached)} old`],
      ["Validated", answer.age_seconds === null ? "" : `${age(answer.age_seconds)} ago`],
      ["Mode", `${answer.mode}, ${answer.reason}`],
      ["Instructions", answer.instructions_version],
      ["Index epoch", String(answer.epoch)],
      ["Job", answer.job_id],
      ["Answer", answer.answer_id],
    ]),
  );
}

function times({ retrieve, assemble, generate, total }) {
  const named = { Retrieve: retrieve, Assemble: assemble, Generate: generate, Total: total };
  return Object.entries(named).map(([name, took]) => [name, took === null ? "" : duration(took)]);
}

function tokens(number, unit = "") {
  return number === null ? "" : `${count(number)} ${unit}`.trim();
}
