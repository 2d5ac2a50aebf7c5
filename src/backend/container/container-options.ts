/** What only a container cluster is asked for; checked at the command line. */
export interface ContainerOptions {
  /** Of every node, as the engine's `--volume` wants them: `/host:/container[:mode]`. */
  readonly volumes: readonly string[];
  /** Of every node, as the engine's options want them, such as `2g` and `1.5`. Absent: no limit. */
  readonly memory?: string;
  readonly cpus?: string;
  /** An image of one's own, with systemd and sshd. Absent: one built for the distribution. */
  readonly nodeImage?: string;
}

/** What is wrong with a creation's options, a sentence each, or `undefined`. */
export const volumeProblem = (given: string): string | undefined =>
  /^\/[^:]*:\/[^:]+(?::(?:ro|rw|z|Z)(?:,(?:ro|rw|z|Z))*)?$/.test(given)
    ? undefined
    : `"${given}" is no </absolute/path/here:/path/on/the/nodes>, with :ro at its end where nodes only read`;

export const memoryProblem = (given: string): string | undefined =>
  /^[1-9][0-9]*[bkmgBKMG]?$/.test(given) ? undefined : `"${given}" is no size, such as 512m or 2g`;

export const cpusProblem = (given: string): string | undefined =>
  /^(?:[0-9]+\.)?[0-9]+$/.test(given) && Number(given) > 0
    ? undefined
    : `"${given}" is no number of CPUs, such as 2 or 0.5`;

export const imageProblem = (given: string): string | undefined =>
  /^[a-z0-9][A-Za-z0-9._/:@-]*$/.test(given)
    ? undefined
    : `"${given}" is no image, such as registry.example.com/node:1`;
