// SPDX-License-Identifier: Apache-2.0
// Requests to the service. A failure is one of: Gone (no answer at all), Refused (the request is wrong, and how), or an abort.
export class Gone extends Error {}
export class Refused extends Error {
  constructor(error, status) { super(error.message ?? "the request was refused"); this.error = error; this.status = status; }
}

const root = "/api/v1/";

const pause = (ms, signal) => new Promise((done, stop) => {
  const timer = setTimeout(done, ms);
  signal?.addEventListener("abort", () => { clearTimeout(timer); stop(new DOMException("cancelled", "AbortError")); }, {once: true});
});

const busy = 503, patience = 6;

async function ask(path, init = {}, tries = 0) {
  let response;
  try {
    response = await fetch(root + path, init);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Gone(error.message);
  }
  if (response.status === busy && tries < patience) {
    await pause(300 * (tries + 1), init.signal);
    return ask(path, init, tries + 1);
  }
  const text = await response.text();
  let body = null;
  if (text) {
    try { body = JSON.parse(text); } catch { body = {error: {message: text.slice(0, 400)}}; }
  }
  if (response.ok) return body;
  throw new Refused(body?.error ?? {message: response.statusText}, response.status);
}

const json = (method, body, signal) => ({method, signal, headers: {"Content-Type": "application/json"}, body: JSON.stringify(body)});

export const get = (path, signal) => ask(path, {signal});
export const post = (path, body, signal) => ask(path, json("POST", body, signal));
export const put = (path, body) => ask(path, json("PUT", body));
export const remove = path => ask(path, {method: "DELETE"});

/// Long work: a task of the service, asked after until it ends. An abort cancels the task there too.
export async function work(operation, body, {signal, progress}) {
  const started = await post(operation, {...body, async: true}, signal);
  if (!started?.task) return started;
  const path = "tasks/" + encodeURIComponent(started.task);
  signal?.addEventListener("abort", () => { remove(path).catch(() => {}); }, {once: true});
  for (let wait = 30; ; wait = Math.min(400, wait * 1.5)) {
    let task;
    try { task = await get(path, signal); } catch (error) {
      // A server that was started anew does not know the task: ask it the question again.
      if (error instanceof Refused && error.status === 404) return work(operation, body, {signal, progress});
      throw error;
    }
    if (task.state === "done") return task.result;
    if (task.state === "failed") throw new Refused(task.error ?? task.result?.error ?? {}, 400);
    if (task.state === "cancelled") throw new DOMException("cancelled", "AbortError");
    progress?.(task);
    await pause(wait, signal);
  }
}
