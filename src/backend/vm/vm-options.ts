/** From the fastest to the slowest: Linux's, macOS's, and QEMU's own translation, which works everywhere. */
export const accelerators = ["kvm", "hvf", "tcg"] as const;
export type Accelerator = (typeof accelerators)[number];

/** Options that only clusters of virtual machines have. The command line checks them. */
export interface VmOptions {
  /** The memory of every node. */
  readonly memoryMegabytes: number;
  readonly cpus: number;
  /** The disk's size as the node sees it. It takes only as much space as the node writes. */
  readonly diskMegabytes: number;
  /** The accelerator to use in any case. Absent: the best that works. */
  readonly accelerator?: Accelerator;
  /** The user's own image. Absent: the distribution's. */
  readonly image?: OwnImage;
}

/** A file by its absolute path, or a URL, which requires the sum. */
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

/** Reads `2g`, `512m` or plain megabytes; returns `undefined` for anything else. */
export function readMegabytes(text: string): number | undefined {
  const [, number, unit = ""] = /^([1-9][0-9]{0,8})([mgt]?)$/i.exec(text) ?? [];
  return number === undefined ? undefined : Number(number) * (unitMegabytes.get(unit.toLowerCase()) ?? 1);
}

/** These functions return what is wrong with an option as one sentence, or `undefined`. */
export const memoryProblem = (given: string): string | undefined =>
  (readMegabytes(given) ?? 0) >= leastMemoryMegabytes
    ? undefined
    : `"${given}" is not a size of at least ${leastMemoryMegabytes} MB, such as 2048 or 4g`;

export const diskProblem = (given: string): string | undefined =>
  readMegabytes(given) !== undefined && /[mgt]$/i.test(given)
    ? undefined
    : `"${given}" is not a size with a unit, such as 20g`;

export const cpusProblem = (given: string): string | undefined =>
  /^[1-9][0-9]{0,2}$/.test(given) ? undefined : `"${given}" is not a whole number of CPUs such as 2`;

export const sumProblem = (given: string): string | undefined =>
  /^[0-9a-f]{64}$/i.test(given) ? undefined : `"${given}" is not a SHA-256 checksum, which has 64 hexadecimal digits`;

export const isUrl = (source: string): boolean => /^https?:\/\//i.test(source);

/** Returns what is wrong with the combination of an image and its sum. */
export function imageProblem(source: string | undefined, sha256: string | undefined): string | undefined {
  if (source === undefined) return sha256 === undefined ? undefined : "`imageSha256` is only allowed with `image`";
  if (isUrl(source)) return sha256 === undefined ? "`image`: a URL requires `imageSha256`" : undefined;
  return undefined;
}
