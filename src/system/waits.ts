import type { Clock } from "./runtime.ts";

/** How often and how long something is tried or looked at. */
interface Wait {
  /** The pause, given the number of failed tries or looks so far (1, 2, …). */
  readonly pauseMs: (times: number) => number;
  /**
   * No further try begins after it; if the wait sees progress, after so long without any. Absent:
   * the caller has a deadline or a signal of its own.
   */
  readonly limitMs?: number;
  readonly mostTries?: number;
}

const every = (ms: number) => (): number => ms;
/** 1, 2, 3 … times as long. */
const rising =
  (ms: number, longestMs = Infinity) =>
  (times: number): number =>
    Math.min(ms * times, longestMs);
/** Each pause is `factor` times as long as the one before. */
const growing =
  (ms: number, factor: number, longestMs = Infinity) =>
  (times: number): number =>
    Math.min(ms * factor ** (times - 1), longestMs);

/** Every retry and every poll with a rhythm of its own, and the reason for it. */
export const waits = {
  // Every backend
  /** A creation that failed still has to be removed. After this time, the user learns what is left. */
  rollBack: { pauseMs: growing(1_000, 2, 15_000), limitMs: 9 * 60_000 },
  /**
   * A machine that ends loses its connections first. A cloud notices only once it is off, and the
   * services of a machine take seconds to stop.
   */
  lostMachine: { pauseMs: every(1_000), limitMs: 15_000 },

  // The cloud's API
  /** The SDK's own retries last only seconds. After this time, machines that cost money are given up. */
  apiOutage: { pauseMs: growing(1_000, 2, 15_000), limitMs: 5 * 60_000 },
  /**
   * The API may not know a thing that it has just created.
   * https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html
   */
  visibility: { pauseMs: every(1_000), limitMs: 120_000 },
  /** An answer may omit machines that run. If they really are gone, the user waits in vain. */
  relisting: { pauseMs: every(1_000), limitMs: 3_000 },
  /** A group was created so recently that it can't be described yet. */
  namesake: { pauseMs: every(1_000), limitMs: 5_000 },
  /** Machines usually end in less than a minute. Each that has ended is progress. */
  ending: { pauseMs: growing(500, 1.3, 5_000), limitMs: 6 * 60_000 },
  /** A launch's machines can be described, but the answers to the request are lost. */
  learning: { pauseMs: every(2_000), limitMs: 20_000 },
  /** Ending machines still use a group. The caller knows how long they may. */
  groupInUse: { pauseMs: every(2_000) },

  // Containers
  /**
   * An engine under load reports busy devices and removals already in progress. Each container that
   * goes is progress.
   */
  containerRemoval: { pauseMs: every(300), mostTries: 8 },
  /** An engine may fail to freeze the processes of a busy container. */
  containerPause: { pauseMs: every(500), mostTries: 5 },
  /** Images stay in use until their containers are gone. Each that goes is progress. */
  imageRemoval: { pauseMs: every(300), limitMs: 15_000 },

  // Virtual machines
  /**
   * Services may take 90 s to end, by systemd's default, and translated machines are slow. Each
   * that is off is progress.
   */
  shutDown: { pauseMs: every(200), limitMs: 4 * 60_000 },
  /** A machine that is still booting doesn't notice its power button, so it is pressed again. */
  powerButton: { pauseMs: every(15_000) },
  /** QEMU ends at once, except for data that it still has to write. */
  machineTerm: { pauseMs: every(50), limitMs: 60_000 },
  machineKill: { pauseMs: every(50), limitMs: 60_000 },
  /** QEMU creates its sockets after it has gone to the background: at once, but a busy computer may not let it run. */
  networkSockets: { pauseMs: every(10), limitMs: 120_000 },
  /**
   * QEMU answers in milliseconds, and on a busy computer in seconds. All that it says is progress.
   * Other clients have the monitor for as long.
   */
  monitor: { pauseMs: every(20), limitMs: 2 * 60_000 },
  /** A slow disk reads a machine's memory in minutes. */
  memoryLoad: { pauseMs: every(50), limitMs: 10 * 60_000 },
  /** Without progress: a disk may stall, and take any time for the memory of a large machine. */
  memorySave: { pauseMs: every(50), limitMs: 15 * 60_000 },
  /** The program that QEMU writes to ends a moment after QEMU is done. Each byte is progress. */
  memoryWritten: { pauseMs: every(50), limitMs: 120_000 },
  /**
   * Looks whether a template's machine has ended, and whether its console shows anything new. The
   * caller has a limit.
   */
  templateBoot: { pauseMs: every(500) },
  /**
   * A copy of a template needs a second, or a minute if many translated machines share a busy
   * computer. Each that becomes a node is progress.
   */
  becomingNode: { pauseMs: every(500), limitMs: 5 * 60_000 },
  /** QEMU stops writing memory when it has written the current part. */
  saveCancelled: { pauseMs: every(20), limitMs: 5 * 60_000 },

  // Nodes
  /** With these pauses, a seventh of the time already spent waiting: a refused connection costs almost nothing. */
  firstContact: { pauseMs: growing(23, 1.15) },
  /**
   * An sshd that is reloading refuses connections for a moment. Callers that can wait longer retry
   * when `error.transient` is set.
   */
  connection: { pauseMs: every(200), limitMs: 1_000 },
  /**
   * From OpenSSH 9.8 on, sshd turns an address away for at least 15 s, and longer if there is more
   * to punish. The signal limits the wait too.
   */
  turnedAway: { pauseMs: growing(1_000, 1.5, 5_000), limitMs: 180_000 },
  /** An sshd that allows fewer sessions than expected, or frees them slowly, has one a little later. */
  session: { pauseMs: rising(20, 200), limitMs: 10_000 },
  /**
   * Machines that continue from a snapshot answer in a moment, but many of them share this
   * computer. Another answer than the last is progress.
   */
  continuedLogin: { pauseMs: every(200), limitMs: 5 * 60_000 },
  /** The same, with the key that the snapshot has. */
  keyReplacement: { pauseMs: every(200), limitMs: 10 * 60_000 },
  /** A node may restart its network or sshd during the installation. */
  reconnection: { pauseMs: growing(1_000, 2, 10_000), limitMs: 120_000 },

  /** A node whose journal is followed restarts, or is cut off. The user ends it. */
  followedNode: { pauseMs: growing(500, 1.5, 5_000) },
  /** A command's user is told within five seconds that a node has stopped or booted. */
  watchedNode: { pauseMs: growing(500, 1.5, 2_000) },

  /** Looks whether nodes that boot have stopped again. The signal limits the wait. */
  booting: { pauseMs: every(2_000) },

  /** A fault's time has come, by the node's clock; healing takes a moment. */
  faultEnd: { pauseMs: every(500), limitMs: 60_000 },

  /** Another command may heal a fault before its time is over. */
  faultHealed: { pauseMs: every(3_000) },

  /** A busy node is slow to keep its processors busy, or to end a process. */
  faultEvidence: { pauseMs: every(500), limitMs: 10_000 },
  /** Machines boot, translated ones too. */
  faultRestart: { pauseMs: every(1_000), limitMs: 10 * 60_000 },
  /** Platforms notice a fault after time-outs of their own. The time of the fault is a limit too. */
  faultEffect: { pauseMs: every(1_000), limitMs: 10 * 60_000 },

  /** A node's upgrade takes seconds to minutes. The signal limits the wait. */
  nodeUpgrade: { pauseMs: every(1_000) },
  /**
   * The lock of upgrades was lost with its connection, perhaps because the first master restarts.
   * The signal limits the wait.
   */
  upgradeLock: { pauseMs: every(1_000) },

  // Files
  /** A server that fails five times in a row is down. */
  download: { pauseMs: rising(1_000), mostTries: 5 },
  /** Only the beginning of an artifact, while the user waits. The caller has a limit. */
  artifactHead: { pauseMs: rising(500), mostTries: 4 },
  /** Other processes hold locks for seconds or minutes. Some callers have a limit. */
  processLock: { pauseMs: every(250) },
} as const satisfies Readonly<Record<string, Wait>>;

/** Returns the rule of a retry or a poll that begins now. */
export function ruleOf({ pauseMs, limitMs = Infinity, mostTries = Infinity }: Wait, clock: Clock) {
  return { clock, pauseMs, deadlineMs: clock.now() + limitMs, mostTries };
}
