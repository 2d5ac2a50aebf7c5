/** What the tests of every backend have: its program, with folders of the test. */
import { type Ended, run, type Running, start, type StartOptions } from "./executable.ts";

/** What `inspect --output json` prints. */
export interface Inspected {
  readonly nodes: readonly InspectedNode[];
  readonly sshKey: { readonly path: string; readonly isHere: boolean };
  readonly webUi: string;
}

export interface InspectedNode {
  readonly state: string;
  readonly reference: string;
  readonly id: string;
  readonly role: string;
  /** Absent in the cloud. */
  readonly hostname?: string;
  /** Present on containers only. */
  readonly containerName?: string;
  readonly publicAddress: string;
  readonly privateAddress: string;
}

export interface TestProgram {
  run(words: readonly string[], options?: Partial<StartOptions>): Promise<Ended>;
  start(words: readonly string[], options?: Partial<StartOptions>): Running;
  /** The cluster of this id, by `inspect`. */
  inspect(clusterId: string): Promise<Inspected>;
}

export interface TestBackend extends TestProgram, AsyncDisposable {
  /** A folder of this test's own, removed with the backend. */
  readonly folder: string;
}

/** The program's environment is `options`' and that of each call. `allWords` adds what every command is given. */
export function testProgram(
  name: string,
  options: StartOptions,
  allWords = (words: readonly string[]): readonly string[] => words,
): TestProgram {
  const merged = (given: Partial<StartOptions> = {}): StartOptions => ({
    ...options,
    ...given,
    environment: { ...options.environment, ...given.environment },
  });
  return {
    run: (words, given) => run(name, allWords(words), merged(given)),
    start: (words, given) => start(name, allWords(words), merged(given)),
    inspect: async (clusterId) => {
      const words = ["inspect", "--output", "json", "--cluster-id", clusterId];
      const { stdout } = await run(name, allWords(words), options);
      return (JSON.parse(stdout) as { readonly cluster: Inspected }).cluster;
    },
  };
}
