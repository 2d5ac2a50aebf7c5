/** Options that only container clusters have. The command line checks them. */
export interface ContainerOptions {
  /** The volumes of every node, in the form of the engine's `--volume`: `/host:/container[:mode]`. */
  readonly volumes: readonly string[];
  /** The limits of every node, in the form of the engine's options, such as `2g` and `1.5`. Absent: no limit. */
  readonly memory?: string;
  readonly cpus?: string;
  /** The user's own image, with systemd and sshd. Absent: an image built for the distribution. */
  readonly nodeImage?: string;
}

/** These functions return what is wrong with an option as one sentence, or `undefined`. */
export const volumeProblem = (given: string): string | undefined =>
  /^\/[^:]*:\/[^:]+(?::(?:ro|rw|z|Z)(?:,(?:ro|rw|z|Z))*)?$/.test(given)
    ? undefined
    : `"${given}" is not of the form </absolute/path/here:/path/on/the/nodes>, optionally followed by :ro for read-only`;

export const memoryProblem = (given: string): string | undefined =>
  /^[1-9][0-9]*[bkmgBKMG]?$/.test(given) ? undefined : `"${given}" is not a size such as 512m or 2g`;

export const cpusProblem = (given: string): string | undefined =>
  /^(?:[0-9]+\.)?[0-9]+$/.test(given) && Number(given) > 0
    ? undefined
    : `"${given}" is not a number of CPUs such as 2 or 0.5`;

export const imageProblem = (given: string): string | undefined =>
  /^[a-z0-9][A-Za-z0-9._/:@-]*$/.test(given)
    ? undefined
    : `"${given}" is not an image such as registry.example.com/node:1`;
