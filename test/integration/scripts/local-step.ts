import { join } from "node:path";
import type { StartStep } from "../../support/action-runner.ts";

/** Starts steps on this computer. `folder` is the runner's. */
export const startLocalStep =
  (folder: string): StartStep =>
  (file, variables) => {
    const before = Bun.spawnSync(["cat", join(folder, "path")])
      .stdout.toString()
      .trim()
      .split("\n");
    const path = [...before, process.env["PATH"]].filter((each) => each !== "").join(":");
    const step = Bun.spawn(["sh", "-e", file], {
      cwd: join(folder, "work"),
      env: { HOME: folder, ...variables, PATH: path },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const written = { text: "" };
    const follow = async (stream: ReadableStream<Uint8Array>): Promise<void> => {
      for await (const chunk of stream) written.text += new TextDecoder().decode(chunk);
    };
    const all = Promise.all([step.exited, follow(step.stdout), follow(step.stderr)]);
    const exited = all.then(([status]) => status);
    return { exited, output: () => written.text, kill: async (signal) => step.kill(signal) };
  };
