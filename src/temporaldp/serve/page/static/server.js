// What only the server computes. Every question is asked for somebody: the next one of the same kind takes its place.

/** Milliseconds without a movement after which the server is asked. */
const PAUSE = 350;

const waiting = new Map();

/**
 * Ask the server, some time after the last question `kind` of the same `place`.
 * `told` is called with {found}, {problem} or, at once, {busy: true}; never once another question took this one's place.
 */
export function ask(place, kind, question, told) {
  drop(place);
  const control = new AbortController();
  const timer = setTimeout(async () => {
    const reply = await answer(`/v1/view/${kind}`, JSON.stringify(question), "application/json", control.signal);
    if (waiting.get(place)?.control === control) {
      waiting.delete(place);
      told(reply);
    }
  }, PAUSE);
  waiting.set(place, { control, timer });
  told({ busy: true });
}

/** Nobody waits for this place's question any more. */
export function drop(place) {
  const before = waiting.get(place);
  if (before) {
    clearTimeout(before.timer);
    before.control.abort();
    waiting.delete(place);
  }
}

/** The matrices of an uploaded file. */
export const upload = (file, kind) => answer(`/v1/view/correlation?kind=${kind}`, file, "application/octet-stream");

/** The page as one file. */
export async function pageAlone() {
  const found = await fetch("/v1/view/alone");
  if (!found.ok) throw new Error(`the server answered ${found.status}`);
  return found.text();
}

async function answer(address, body, type, signal) {
  try {
    const found = await fetch(address, { method: "POST", body, headers: { "Content-Type": type }, signal });
    const document = await found.json();
    return found.ok ? { found: document } : { problem: document.detail ?? `the server answered ${found.status}` };
  } catch (error) {
    return { problem: error.name === "AbortError" ? "" : "The server does not answer." };
  }
}
