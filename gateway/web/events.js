// Server-Sent Events out of a response's body. EventSource can neither post nor send a token.

const BLANK_LINE = /\r\n\r\n|\n\n|\r\r/;
const LINE_END = /\r\n|\n|\r/;

export async function* eventsIn(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return; // what is not complete is no event
    const blocks = (held + value).split(BLANK_LINE);
    held = blocks.pop();
    yield* blocks.map(eventOf).filter((event) => event.name);
  }
}

function eventOf(block) {
  let name = "";
  const data = [];
  for (const line of block.split(LINE_END)) {
    const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line);
    if (field === "event") name = value;
    if (field === "data") data.push(value);
  }
  return { name, content: name && JSON.parse(data.join("\n")) };
}
