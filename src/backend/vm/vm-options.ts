/** From the fastest to the slowest: Linux's, macOS's, and QEMU's own translation, which works everywhere. */
export const accelerators = ["kvm", "hvf", "tcg"] as const;
export type Accelerator = (typeof accelerators)[number];

/** What only a cluster of virtual machines is asked for; checked at the command line. */
export interface VmOptions {
  /** Of every node. */
  readonly memoryMegabytes: number;
  readonly cpus: number;
  /** How large the node's disk looks; it takes the room that is written to. */
  readonly diskMegabytes: number;
  /** The one to use, whatever happens. Absent: the best that works. */
  readonly accelerator?: Accelerator;
  /** An image of one's own. Absent: the distribution's. */
  readonly image?: OwnImage;
}

/** A file by its absolute path, or a URL, which needs the sum. */
interface OwnImage {
  readonly source: string;
  /** Hexadecimal. */
  readonly sha256?: string;
}

export const defaults = { memoryMegabytes: 2048, cpus: 2, diskMegabytes: 20 * 1024 } as const;

const leastMemoryMegabytes = 256;
const unitMegabytes = new Map([
  ["", 1],
  ["m", 1],
  ["g", 1024],
  ["t", 1024 * 1024],
]);

/** Reads `2g`, `512m` or plain megabytes; `undefined` for what is none of these. */
export function readMegabytes(text: string): number | undefined {
  const [, number, unit = ""] = /^([1-9][0-9]{0,8})([mgt]?)$/i.exec(text) ?? [];
  return number === undefined ? undefined : Number(number) * (unitMegabytes.get(unit.toLowerCase()) ?? 1);
}

/** What is wrong with a creation's options, a sentence each, or `undefined`. */
export const memoryProblem = (given: string): string | undefined =>
  (readMegabytes(given) ?? 0) >= leastMemoryMegabytes
    ? undefined
    : `"${given}" is no size of at least ${leastMemoryMegabytes} MB, such as 2048 or 4g`;

export const diskProblem = (given: string): string | undefined =>
  readMegabytes(given) !== undefined && /[mgt]$/i.test(given)
    ? undefined
    : `"${given}" is no size with its unit, such as 20g`;

export const cpusProblem = (given: string): string | undefined =>
  /^[1-9][0-9]{0,2}$/.test(given) ? undefined : `"${given}" is no whole number of CPUs, such as 2`;

export const sumProblem = (given: string): string | undefined =>
  /^[0-9a-f]{64}$/i.test(given) ? undefined : `"${given}" is no SHA-256 sum: 64 hexadecimal digits`;

export const isUrl = (source: string): boolean => /^https?:\/\//i.test(source);

/** What an image and its sum are together. */
export function imageProblem(source: string | undefined, sha256: string | undefined): string | undefined {
  if (source === undefined) return sha256 === undefined ? undefined : "`imageSha256` is the sum of an `image`";
  if (isUrl(source)) return sha256 === undefined ? "`image`: what a URL leads to needs its `imageSha256`" : undefined;
  return undefined;
}
