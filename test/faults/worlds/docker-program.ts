/**
 * The `docker` or `podman` on the PATH of a container world: passes its words and its stdin on to the scripted engine,
 * and ends as that says. Usage: docker-program.ts URL WORDS…
 */
import type { EngineAnswer } from "./engine-answers.ts";

const [url = "", ...words] = process.argv.slice(2);
// Archives take the real program a moment, in which it can be interrupted.
if (words[0] === "save" || words[0] === "load") await Bun.sleep(500);
const readsInput =
  ["cp", "build", "load"].includes(words[0] ?? "") || words.includes("--interactive");
const stdin = readsInput ? await Bun.stdin.bytes() : new Uint8Array();
const body = JSON.stringify({ words, stdin: Buffer.from(stdin).toString("base64") });
const response = await fetch(url, { method: "POST", body, timeout: false });
const { status, stdout, stderr, isKilled } = (await response.json()) as EngineAnswer;
process.stderr.write(stderr);
process.stdout.write(stdout);
if (isKilled) process.kill(process.pid, "SIGKILL");
process.exitCode = status;
