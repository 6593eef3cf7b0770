// SPDX-License-Identifier: Apache-2.0
// Starts and ends `chokepoint serve`; it is killed as a crash would, so that a restart is what is tested.
import {spawn} from "node:child_process";

export async function startServer(program, studies, port = 0) {
  const child = spawn(program, ["serve", "--port", String(port), "--studies", studies], {stdio: ["ignore", "pipe", "pipe"]});
  let said = "";
  const url = await new Promise((done, stop) => {
    const timer = setTimeout(() => stop(new Error("no address within 20 s: " + said)), 20000);
    const hear = chunk => {
      said += chunk;
      const found = /http:\/\/[^\s/]+:(\d+)/.exec(said);
      if (found) { clearTimeout(timer); done(found[0]); }
    };
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    child.on("exit", code => { clearTimeout(timer); stop(new Error(`ended with ${code}: ${said}`)); });
  });
  const ended = new Promise(done => child.on("exit", done));
  return {url, port: Number(new URL(url).port), kill: async () => { child.kill("SIGKILL"); await ended; }};
}
