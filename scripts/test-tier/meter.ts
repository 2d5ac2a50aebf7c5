/** What a tier makes this computer do: the processors' seconds, and what was started. Other work on the computer counts as well. */
import { readdirSync, readFileSync } from "node:fs";

const lookEveryMs = 1_000;
/** Linux counts time in hundredths of seconds. */
const ticksPerSecond = 100;

interface Ticks {
  readonly user: number;
  readonly system: number;
  readonly processes: number;
}

/** Resolves with a line about the time since the call. Computers without /proc have none. */
export function startMeter(): () => Promise<string> {
  const before = readTicks();
  const started = performance.now();
  if (before === undefined) return async () => "";
  const containers = countDockerStarts();
  const seen = new Map<string, string>();
  const timer = setInterval(() => lookAround(seen), lookEveryMs);
  return async () => {
    clearInterval(timer);
    lookAround(seen);
    const now = readTicks() ?? before;
    const seconds = ((performance.now() - started) / 1_000).toFixed(0);
    const count = (kind: string): number =>
      [...seen.values()].filter((each) => each === kind).length;
    return (
      `${seconds} s, of the processors' time ${now.user - before.user} s as user and ${now.system - before.system} s as system; ` +
      `started ${now.processes - before.processes} processes, ${await containers()} containers of Docker, ` +
      `${count("podman")} of Podman and ${count("qemu")} virtual machines`
    );
  };
}

function readTicks(): Ticks | undefined {
  try {
    const text = readFileSync("/proc/stat", "utf8");
    const [, , user = 0, nice = 0, system = 0, , , interrupts = 0, softInterrupts = 0] = text
      .slice(0, text.indexOf("\n"))
      .split(" ")
      .map(Number);
    const seconds = (ticks: number): number => Math.round(ticks / ticksPerSecond);
    return {
      user: seconds(user + nice),
      system: seconds(system + interrupts + softInterrupts),
      processes: Number(/^processes (\d+)$/m.exec(text)?.[1]),
    };
  } catch {
    return undefined;
  }
}

/** Without Docker there are none. */
function countDockerStarts(): () => Promise<number> {
  if (Bun.which("docker") === null) return async () => 0;
  const argv = ["docker", "events", "--filter=event=start", "--format={{.ID}}"];
  const events = Bun.spawn(argv, { stdin: "ignore", stdout: "pipe", stderr: "ignore" });
  const text = new Response(events.stdout).text();
  return async () => {
    events.kill();
    return (await text).split("\n").length - 1;
  };
}

/** A container of Podman has a conmon; a machine that only tries QEMU out writes no process file. */
function lookAround(seen: Map<string, string>): void {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name) && !seen.has(name))) {
    try {
      const [program = "", ...words] = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
      if (program.endsWith("/conmon")) seen.set(pid, "podman");
      if (program.includes("qemu-system-") && words.includes("-pidfile")) seen.set(pid, "qemu");
    } catch {
      // It has ended.
    }
  }
}
