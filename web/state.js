// SPDX-License-Identifier: Apache-2.0
// What the page holds: two scenarios at most, what is asked about them, and the files dropped on it. Kept in the browser
// and in the address, so that a reload, a restart of the server or a link brings all of it back.
export const scenario = () => ({
  model: "llama-3-70b", cluster: "dgx-h100", accelerator: "", gpus: 1024, batch: 1024, sequence: 8192, precision: "bf16", framework: "megatron",
  strategy: "", network: 1, nvlink: 1, latency: 1, hbm: 1, host: 1, price: 0, job: "", moved: [],
});
export const fresh = () => ({
  tab: "plan", active: "a", a: scenario(), b: null, files: [],
  whatif: {changes: [], sensitivities: true, scale: "", grow: false, tokens: "", by: "", breakEven: false},
  wiring: {expect: "all_reduce", hosts: 4},
});

export const state = fresh();

const key = "chokepoint.state";
const own = (value, like) => value !== null && typeof value === "object" && !Array.isArray(value) ? Object.fromEntries(
  Object.entries(value).filter(([k]) => k in like)) : {};

/// Takes over what is known of a stored state; what is missing or odd keeps its default.
export function restore(stored) {
  const clean = fresh(), given = own(stored, clean);
  for (const [k, value] of Object.entries(given)) {
    if (k === "a" || k === "b") clean[k] = value ? {...scenario(), ...sameKind(own(value, scenario()), scenario())} : clean[k];
    else if (k === "files") clean.files = Array.isArray(value) ? value.filter(f => f && typeof f.name === "string" && (f.text || f.base64)) : [];
    else if (typeof clean[k] === "object" && clean[k]) clean[k] = {...clean[k], ...sameKind(own(value, clean[k]), clean[k])};
    else if (typeof value === typeof clean[k]) clean[k] = value;
  }
  if (clean.active === "b" && !clean.b) clean.active = "a";
  Object.assign(state, clean);
}
const sameKind = (value, like) => Object.fromEntries(Object.entries(value).filter(([k, v]) => typeof v === typeof like[k] &&
  Array.isArray(v) === Array.isArray(like[k]) && (typeof v !== "number" || Number.isFinite(v))));

/// Only what differs from the start, to keep links short.
function differing(value, like) {
  const out = {};
  for (const [k, v] of Object.entries(value)) if (JSON.stringify(v) !== JSON.stringify(like[k])) out[k] = v;
  return out;
}
export function compact(files) {
  const start = fresh(), out = differing(state, start);
  for (const k of ["a", "b"]) if (state[k]) out[k] = differing(state[k], scenario());
  for (const k of ["whatif", "wiring"]) if (out[k]) out[k] = differing(out[k], start[k]);
  if (!files) delete out.files;
  return out;
}

export function keep() {
  for (const files of [true, false]) {
    try { localStorage.setItem(key, JSON.stringify(compact(files))); return; } catch { /* too large with the files: without */ }
  }
}
export function kept() {
  try { return JSON.parse(localStorage.getItem(key)); } catch { return null; }
}

export const written = hash => { try { localStorage.setItem(key + ".address", hash); } catch { /* private window */ } };
export const lastWritten = () => { try { return localStorage.getItem(key + ".address"); } catch { return null; } };

const base64 = bytes => btoa(Array.from(bytes, b => String.fromCharCode(b)).join("")).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
const bytes = text => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), c => c.charCodeAt(0));
const through = async (data, stream) => new Uint8Array(await new Response(new Blob([data]).stream().pipeThrough(stream)).arrayBuffer());

export async function toFragment() {
  return "#s=" + base64(await through(new TextEncoder().encode(JSON.stringify(compact(false))), new CompressionStream("deflate-raw")));
}
export async function fromFragment(hash) {
  if (!hash.startsWith("#s=")) return null;
  return JSON.parse(new TextDecoder().decode(await through(bytes(hash.slice(3)), new DecompressionStream("deflate-raw"))));
}
