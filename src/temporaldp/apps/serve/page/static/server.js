// Questions to the server. In each lane one question is answered at a time, and the newest one is next.

/** Milliseconds after which an answer that a newer question has superseded is no longer waited for. */
const PATIENCE = 1000;

/** Answers that are kept, so that a movement back and forth asks nothing. */
const MOST_KEPT = 50;

const kept = new Map();
const lanes = new Map();

/**
 * Ask the server. `report` is called with {found} or {problem}, at once if the answer is known, and never if another question
 * of the same lane has superseded this one before it was sent, or aborted it.
 */
export async function ask(lane, kind, question, report) {
  const body = JSON.stringify(question);
  const key = `${kind} ${body}`;
  const current = lanes.get(lane);
  if (current) {
    const same = current.key === key && !current.control.signal.aborted;
    current.next = same ? null : () => ask(lane, kind, question, report);
    current.timer = same
      ? clearTimeout(current.timer)
      : (current.timer ?? setTimeout(() => current.control.abort(), PATIENCE));
    return undefined;
  }
  if (kept.has(key)) return report(kept.get(key));
  const control = new AbortController();
  const waiting = { key, control, next: null };
  lanes.set(lane, waiting);
  const reply = await answer(`/v1/view/${kind}`, body, "application/json", control.signal);
  clearTimeout(waiting.timer);
  lanes.delete(lane);
  if (reply.found) {
    if (kept.size >= MOST_KEPT) kept.delete(kept.keys().next().value);
    kept.set(key, reply);
  }
  if (!control.signal.aborted) report(reply);
  return waiting.next?.();
}

/** Abort what a lane asks. */
export function drop(lane) {
  const current = lanes.get(lane);
  if (!current) return;
  current.next = null;
  current.control.abort();
}

/** The matrices of an uploaded file, or its columns where `roles` have to name some. */
export const upload = (file, kind, roles) =>
  answer(`/v1/view/correlation?${new URLSearchParams({ kind, ...roles })}`, file, "application/octet-stream");

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
    return found.ok ? { found: document } : { problem: document?.detail ?? `the server answered ${found.status}` };
  } catch (error) {
    return { problem: error.name === "AbortError" ? "" : "The server does not answer." };
  }
}
