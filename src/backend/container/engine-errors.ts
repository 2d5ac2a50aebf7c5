import { ClusterError } from "../../errors.ts";
import type { ProgramEnd } from "../../system/run-program.ts";

/**
 * The engine's command line has no error codes, only words. This is the one place that reads them; they were the same from version 20 to 28.
 */
const meanings = {
  forbidden: /permission denied while trying to connect|connect: permission denied/i,
  silent: /cannot connect to the docker daemon|is the docker daemon running|error during connect/i,
  nameTaken: /is already in use by container|network with name .* already exists/i,
  noAddresses: /non-overlapping ipv4 address pool|address pools have been fully subnetted|no available ipv4 addresses/i,
  noSpace: /no space left on device/i,
  gone: /no such (?:container|network|image|object)|network .* not found|is not running|removal of container .* is already in progress/i,
} as const;

export type EngineMeaning = keyof typeof meanings;

export const means = (text: string, meaning: EngineMeaning): boolean => meanings[meaning].test(text);

/** What is wrong with a command that failed, and what to do about it. */
export function engineFailure(program: string, words: readonly string[], end: ProgramEnd): ClusterError {
  const said = lastLine(end.stderr) || lastLine(end.stdout) || `it ended with status ${end.status ?? "unknown"}`;
  const meaning = (Object.keys(meanings) as EngineMeaning[]).find((name) => means(end.stderr, name));
  const facts = { command: words[0], status: end.status, meaning };
  switch (meaning) {
    case "forbidden":
      return new ClusterError("machine-not-set-up", `You may not use Docker on this machine: ${said}.`, {
        hint: "Join the group docker, then log in anew: sudo usermod -aG docker $USER",
        facts,
      });
    case "silent":
      return new ClusterError("machine-not-set-up", `Docker does not answer: ${said}.`, {
        hint: "Start it: sudo systemctl start docker, or on macOS the program that runs it; DOCKER_HOST names another one.",
        facts,
      });
    case "noAddresses":
      return new ClusterError("capacity-lacking", `Docker has no free addresses for another network: ${said}.`, {
        hint: "Destroy clusters that you need no more, or remove unused networks: docker network prune",
        facts,
      });
    case "noSpace":
      return new ClusterError("capacity-lacking", `Docker's disk is full: ${said}.`, {
        hint: "Make room, such as with: docker system prune",
        facts,
      });
    case "nameTaken":
    case "gone":
    case undefined:
      return new ClusterError("engine-failed", `${program} ${words.slice(0, 1).join(" ")} failed: ${said}.`, {
        hint: "With -vv every command is shown as it was given.",
        facts,
      });
  }
}

/** Whether a failure is the engine's refusal of a name that something else has. */
export const isNameTaken = (error: unknown): boolean =>
  error instanceof ClusterError && error.facts["meaning"] === ("nameTaken" satisfies EngineMeaning);

export function engineMissing(program: string, cause: unknown): ClusterError {
  return new ClusterError("machine-not-set-up", `There is no program ${program} on the PATH that can be run.`, {
    hint: "Install Docker, version 20.10 or later: https://docs.docker.com/engine/install/ (Debian and Ubuntu: sudo apt-get install docker.io)",
    facts: { program },
    cause,
  });
}

/** `start` says only after it which container was meant. */
const daemonPrefix = /^(?:docker: )?Error response from daemon: /;

function lastLine(text: string): string {
  const lines = text.split("\n").map((line) => line.trim());
  const daemon = lines.findLast((line) => daemonPrefix.test(line));
  // A refused command line is followed by an advice to read the help.
  const last = lines.findLast((line) => line !== "" && !/^(?:See '|Run ')/.test(line)) ?? "";
  return (daemon ?? last).replace(daemonPrefix, "").replace(/[.:\s]+$/, "");
}
