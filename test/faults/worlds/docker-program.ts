/**
 * The `docker` or `podman` on the PATH of a container world: passes its words and its stdin on to the scripted engine,
 * and ends as that says. Usage: docker-program.ts URL WORDS…
 */
import type { EngineAnswer } from "./scripted-engine.ts";

const [url = "", ...words] = process.argv.slice(2);
const stdin = words[0] === "cp" || words[0] === "build" ? await Bun.stdin.bytes() : new Uint8Array();
const body = JSON.stringify({ words, stdin: Buffer.from(stdin).toString("base64") });
const response = await fetch(url, { method: "POST", body, timeout: false });
const { status, stdout, stderr, isKilled } = (await response.json()) as EngineAnswer;
process.stderr.write(stderr);
process.stdout.write(stdout);
if (isKilled) process.kill(process.pid, "SIGKILL");
process.exitCode = status;
