/** What the program asks of QEMU. `start`: a machine that goes to the background, which then is a `machine`. */
export type QemuCall = "version" | "features" | "info" | "disk" | "trial" | "start" | "machine";

export interface QemuFault {
  readonly call: QemuCall;
  readonly stderr?: string;
  readonly stdout?: string;
  /** 1 unless given. */
  readonly status?: number;
  readonly hangs?: true;
  /** It does what it was asked for, and fails all the same. */
  readonly isCarriedOut?: true;
}

/** What becomes of a template's machine, or of any other that is saved. */
export interface TemplateBehaviour {
  /** Whether it ever has booted. */
  readonly boots: boolean;
  readonly canSave: boolean;
  /** How large its memory is when it is saved; default: 0. */
  readonly savedBytes?: number;
}

export function callOf(program: string, words: readonly string[]): QemuCall {
  if (program === "qemu-img") return words[0] === "info" ? "info" : "disk";
  if (words.includes("--version")) return "version";
  if (/(?:^|=)help$/.test(words.at(-1) ?? "")) return "features";
  if (words.includes("-daemonize")) return "start";
  return words.includes("-pidfile") ? "machine" : "trial";
}
