/**
 * The five things that must be true after every fault. Each function returns how its invariant was violated, in words;
 * nothing if it holds.
 */
import type { Evidence, Thing } from "./fault.ts";

/** The exit code, the error id and the time are the expected ones. */
export function promiseBreaches({ expected, ended, tookMs }: Evidence): readonly string[] {
  const status = ended.signal ?? ended.status;
  const id = errorIdOf(ended.stderr);
  const { withinMs = Number.POSITIVE_INFINITY } = expected;
  return [
    ...(status === expected.status ? [] : [`ended with ${String(status)}, not ${expected.status}`]),
    ...(id === expected.id ? [] : [`error id ${id ?? "missing"}, not ${expected.id ?? "none"}`]),
    ...(tookMs > withinMs ? [`took ${seconds(tookMs)}, over ${seconds(withinMs)}`] : []),
  ];
}

/** Texts of the runtime, of libraries and of other tools that help no user. */
const foreignTexts = [
  /\$response|hidden field/,
  /verbose: true/,
  /\n\s+at .+:\d+:\d+/,
  /\[object Object\]/,
  /\bundefined\b/,
  /Please report/,
];

/** The message names the cause, and nothing that only a programmer understands. */
export function causeBreaches({ expected, ended }: Evidence): readonly string[] {
  const told = `${ended.stdout}\n${ended.stderr}`;
  const { hides = [] } = expected;
  return [
    ...expected.says
      .filter((text) => !holds(told, text))
      .map((text) => `does not say ${shown(text)}`),
    ...[...hides, ...foreignTexts]
      .filter((text) => holds(told, text))
      .map((text) => `says ${shown(text)}`),
  ];
}

/** Nothing is left that the output does not announce. */
export function leftBreaches(evidence: Evidence): readonly string[] {
  return unannounced(evidence).map((thing) => `left unannounced: ${thing.kind} ${thing.id}`);
}

/** No secret is in any output, log, state file, argument list or node. */
export function secretBreaches({ secrets, exhibits }: Evidence): readonly string[] {
  const hits = exhibits.flatMap(({ where, text }) =>
    secrets
      .filter((secret) => text.includes(secret))
      .map((secret) => `${where} (${secret.slice(0, 4)}…)`),
  );
  return [...new Set(hits)].map((hit) => `a secret is in ${hit}`);
}

/** The next creation of the same id works, and removes what the fault had left. */
export function nextBreaches({ next, leftAfterNext }: Evidence): readonly string[] {
  const status = next.signal ?? next.status;
  return [
    ...(status === 0
      ? []
      : [`the next create ends with ${String(status)}: ${lastWords(next.stderr)}`]),
    ...leftAfterNext.map((thing) => `still there after the next create: ${thing.kind} ${thing.id}`),
  ];
}

/** Returns machines that no output announced, or that the next creation did not remove. */
export function machinesLeft(evidence: Evidence): number {
  const found = [...unannounced(evidence), ...evidence.leftAfterNext].filter(
    ({ kind }) => kind === "machine",
  );
  return new Set(found.map(({ id }) => id)).size;
}

/**
 * An announcement names the thing, or says that things of its kind may be left. A killed program can't announce
 * anything: the next creation removes everything.
 */
function unannounced({ expected, ended, left }: Evidence): readonly Thing[] {
  if (expected.status === "SIGKILL") return [];
  const told = ended.stderr;
  return left.filter(
    ({ kind, id }) => !told.includes(id) && !(generalAnnouncements[kind]?.test(told) ?? false),
  );
}

const generalAnnouncements: Partial<Readonly<Record<Thing["kind"], RegExp>>> = {
  machine: /Machines of this creation may be left|(?:Containers|Machines) may be left/,
  group: /may be left in region .*removes (?:its security group|the rest)/,
  network: /(?:network|may be left)/,
};

const errorIdOf = (stderr: string): string | undefined =>
  /\n\[([a-z0-9-]+)\]\n*$/.exec(stderr)?.[1];

const holds = (text: string, part: string | RegExp): boolean =>
  typeof part === "string" ? text.includes(part) : part.test(text);

const shown = (text: string | RegExp): string =>
  typeof text === "string" ? JSON.stringify(text) : String(text);

const seconds = (milliseconds: number): string => `${(milliseconds / 1000).toFixed(1)} s`;

const lastWords = (stderr: string): string =>
  stderr.slice(stderr.indexOf("Error: ")).trim().slice(0, 200);
