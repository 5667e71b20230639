// The exact passage behind a mark.

import { byId, element, rows } from "./elements.js";
import { score } from "./words.js";

const LINKED = new Set(["http:", "https:"]);

/** Open a source's passage, with the sentence that cites it where one does. */
export function open(source, answer, citation) {
  byId("passage-title").textContent = `${source.label}: ${source.title || source.document_id}`;
  byId("passage-content").replaceChildren(
    ...(source.suspected_injection ? [warning()] : []),
    element("div", { className: "document-text", dir: "auto" }, source.included_text),
    element("dl", {}, ...rows(facts(source, answer, citation))),
  );
  byId("passage").showModal();
  byId("passage").scrollTop = 0;
}

function facts(source, answer, citation) {
  return [
    ["Document", source.document_id],
    ["Version", source.version],
    ["Section", source.heading_path.join(" \u203a ")],
    ["Score", score(source.score, answer.score_space)],
    ["May be read by", source.access_level],
    ["Address", address(source.uri)],
    ["Cited for", citation && cited(answer.text, citation)],
    ["Support", citation && `${Math.round(100 * citation.support)} % of that sentence`],
    ["Passages", source.passages.join(", ")],
  ];
}

function warning() {
  const said = "This passage holds text that speaks to a model rather than to people.";
  return element("p", { className: "notice bad" }, said);
}

function cited(text, { start, end }) {
  return [...text].slice(start, end).join("");
}

/** A link where following it is safe, else the bare text. */
function address(uri) {
  const found = URL.canParse(uri) ? new URL(uri) : null;
  if (!found || !LINKED.has(found.protocol)) return uri;
  const attributes = { href: found.href, target: "_blank", rel: "noopener noreferrer" };
  return element("a", attributes, uri);
}
