// The page: one question at a time, from the form to its last event.

import { showAnswer } from "./answer.js";
import { look, watchWhileOpen } from "./capacity.js";
import { ask, cancelJob, queue, Refusal, status } from "./door.js";
import { byId, element, show } from "./elements.js";
import { followed, forgetJob, hasEnded, progress, remember } from "./jobs.js";
import { Stages } from "./stages.js";
import { forget, held, isToken, keep } from "./token.js";
import { headline, isPassing, jobEnd, refusalTitle, sentence, stage, withdrawal } from "./words.js";

let running = null;
let asked = "";
let passing = false; // what there is no answer for now, there may be one for later

/** Do the work of one question; `work` gets a signal that ends it, and where its stages are told. */
async function run(work) {
  const control = new AbortController();
  running = control;
  const stages = begin();
  try {
    await work(control.signal, stages);
  } catch (error) {
    if (control.signal.aborted) withdraw("Cancelled", broken("You cancelled this question."));
    else fail(error);
  } finally {
    stages.stop();
    running = null;
    showRunning(false);
    if (passing) offerLater();
  }
}

function answerNow(question) {
  asked = question;
  return run((signal, stages) => follow(ask(question, signal), signal, stages));
}

function answerLater(question) {
  return run(async (signal, stages) => {
    const answer = await queue(question, signal);
    end(answer);
    await followJob(answer.job_id, signal, stages);
  });
}

async function followJob(id, signal, stages) {
  remember(id);
  const told = { state: null, since: 0 };
  try {
    for await (const found of progress(id, signal)) {
      if (hasEnded(found)) endJob(found, told, stages);
      else tellState(found.state, told, stages);
    }
  } catch (error) {
    if (signal.aborted) await cancelJob(id);
    throw error;
  } finally {
    forgetJob();
  }
}

function tellState(state, told, stages) {
  if (state === told.state) return;
  tellStateEnded(told, stages);
  Object.assign(told, { state, since: performance.now() });
  tellStage({ stage: state, milliseconds: null }, stages);
}

function tellStateEnded({ state, since }, stages) {
  if (state) stages.told({ stage: state, milliseconds: performance.now() - since });
}

function endJob(found, told, stages) {
  if (found.state === "done") tellStateEnded(told, stages);
  if (found.answer) return end(found.answer);
  const [title, why] = jobEnd(found);
  return withdraw(title, why);
}

async function follow(events, signal, stages) {
  let last = null;
  for await (const { name, content } of events) {
    last = name;
    if (name === "stage") tellStage(content, stages);
    if (name === "delta") append(content.text);
    if (name === "retract") withdraw("Withdrawn", withdrawal(content.reason));
    if (name === "answer") end(content);
    if (name === "answer" && content.job_id) await followJob(content.job_id, signal, stages);
    if (name === "error") throw new Refusal(content);
  }
  if (last !== "answer") throw new Error("the stream ended early");
}

function begin() {
  for (const id of ["refusal", "offer", "outcome", "withdrawn", "text", "words"]) {
    byId(id).hidden = true;
  }
  passing = false;
  byId("evidence").hidden = true;
  byId("provenance").hidden = true;
  byId("text").textContent = "";
  byId("work").hidden = false;
  showRunning(true);
  return new Stages(byId("stages"));
}

function tellStage(content, stages) {
  stages.told(content);
  if (content.milliseconds === null) say(`${stage(content.stage)[0]}…`);
}

function append(text) {
  byId("headline").textContent = "Answer, still being checked";
  byId("outcome").hidden = false;
  byId("text").hidden = false;
  byId("text").append(text);
}

/** Take away the text that was shown, and say why. */
function withdraw(title, why) {
  byId("text").textContent = "";
  byId("text").hidden = true;
  byId("words").hidden = true; // they belong to what was there before
  byId("headline").textContent = title;
  byId("outcome").hidden = false;
  show(byId("withdrawn"), why);
}

function broken(why) {
  const shown = Boolean(byId("text").textContent);
  return shown ? `${why} The text that had arrived was not final and is withdrawn.` : why;
}

function end(answer) {
  showAnswer(answer);
  byId("outcome").hidden = false;
  say(`${headline(answer)}. ${sentence(answer.message)}`);
  passing = isPassing(answer);
}

/** What cannot be answered now can be queued, where there is a queue. */
async function offerLater() {
  const { jobs } = await status().catch(() => ({ jobs: false }));
  byId("offer").hidden = !jobs || Boolean(running);
}

function fail(error) {
  if (byId("text").textContent) withdraw("No answer", broken("The answer was interrupted."));
  if (!(error instanceof Refusal)) {
    console.error(error);
    return refuse("No answer", ["The connection to the gateway broke. Ask again."]);
  }
  if (error.reason !== "SIGNED_OUT" && error.status === 401) askForToken(error.message);
  passing = error.reason === "NO_ROOM";
  const later = error.retryAfter && `Try again in ${Math.ceil(error.retryAfter)} s.`;
  const id = error.requestId && `Request ${error.requestId}`;
  return refuse(refusalTitle(error), [sentence(error.message), later, id]);
}

function refuse(title, lines) {
  const said = lines.filter(Boolean).map((line) => element("p", {}, line));
  byId("refusal").replaceChildren(element("h2", {}, title), ...said);
  byId("refusal").hidden = false;
}

function say(text) {
  byId("said").textContent = text;
}

function showRunning(yes) {
  byId("send").setAttribute("aria-disabled", String(yes));
  if (!yes && document.activeElement === byId("cancel")) byId("question").focus();
  byId("cancel").hidden = !yes;
}

function askForToken(why) {
  byId("sign-in").hidden = false;
  byId("signed-in").hidden = true;
  byId("token-fault").textContent = held() ? `That token was refused: ${why}.` : "";
}

/** Find out who asks: the capacity of an operator is shown, who has no sign-in is asked for one. */
async function greet() {
  byId("sign-in").hidden = true;
  byId("signed-in").hidden = !held();
  try {
    await look();
  } catch (refusal) {
    if (refusal.reason === "SIGNED_OUT") refuse(refusal.title, [refusal.message]);
    else askForToken(refusal.message);
  }
}

byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const question = byId("question").value.trim();
  if (!running && question) answerNow(question);
});

byId("question").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  byId("ask").requestSubmit();
});

byId("later").addEventListener("click", () => {
  if (running) return;
  byId("cancel").hidden = false;
  byId("cancel").focus();
  answerLater(asked);
});

byId("cancel").addEventListener("click", () => running?.abort());

byId("sign-in").addEventListener("submit", async (event) => {
  event.preventDefault();
  const token = byId("token").value.trim();
  if (!isToken(token)) {
    byId("token-fault").textContent = "That is no token: one has letters, digits and . _ - only.";
    return;
  }
  keep(token);
  byId("token").value = "";
  byId("refusal").hidden = true;
  await greet();
  (byId("sign-in").hidden ? byId("question") : byId("token")).focus();
});

byId("sign-out").addEventListener("click", async () => {
  running?.abort();
  forget();
  await greet();
  if (!byId("sign-in").hidden) byId("token").focus();
});

byId("close").addEventListener("click", () => byId("passage").close());
byId("passage").addEventListener("click", (event) => {
  if (event.target === byId("passage")) byId("passage").close(); // beside it, on the backdrop
});

watchWhileOpen();
await greet();
const left = followed();
if (left && byId("sign-in").hidden) {
  run((signal, stages) => followJob(left, signal, stages));
}
