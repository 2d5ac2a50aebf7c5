/**
 * Runs the README's first cluster in a terminal, and writes what the terminal showed to src/commands/session.svg, as a picture that plays at the
 * speed of the run. Run it after the programs' output has changed; run it twice if the first run builds the nodes' image. Needs Docker and built
 * programs.
 * Usage: bun run scripts/record-session.ts
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { readmeExample } from "../test/e2e/support/readme.ts";
import { Screen } from "./record-session/screen.ts";
import { type Frame, sessionPicture } from "./record-session/session-picture.ts";

const root = join(import.meta.dir, "..");
const columns = 80;
const example = await readmeExample("first cluster");
const home = await mkdtemp(join(tmpdir(), "cluster-e2e-session."));
const environment = {
  PATH: `${join(root, "dist")}${delimiter}${process.env["PATH"]}`,
  HOME: home,
  TERM: "xterm-256color",
};
const screen = new Screen(columns);
const frames: Frame[] = [];
const startedMs = Date.now();
const keep = (): void => {
  frames.push({ ms: Date.now() - startedMs, rows: screen.rows });
};

try {
  for (const line of example.trim().split("\n")) {
    screen.write(`\x1b[1m$ ${line}\x1b[22m\r\n`);
    keep();
    await Bun.sleep(700);
    const decoder = new TextDecoder();
    const data = (_: unknown, bytes: Uint8Array): void => {
      screen.write(decoder.decode(bytes, { stream: true }).replaceAll(home, "/home/me"));
      keep();
    };
    const child = Bun.spawn(["sh", "-c", line], {
      env: environment,
      terminal: { cols: columns, rows: 50, data },
    });
    if ((await child.exited) !== 0) throw new Error(`${line} ended with ${child.exitCode}`);
    await Bun.sleep(700);
  }
} finally {
  await rm(home, { recursive: true });
}
const path = join(root, "src", "commands", "session.svg");
await Bun.write(path, sessionPicture(frames, columns));
console.log(
  `${path}: ${screen.rows.length} lines, ${((Date.now() - startedMs) / 1000).toFixed(0)} s`,
);
