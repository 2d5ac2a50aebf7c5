import { setTimeout as delay } from "node:timers/promises";
import { generateKeyPair } from "../../../src/ssh/keys.ts";
import type { Exec, ExecResult } from "./exec.ts";

/** The answer to commands that match. */
export interface ScriptedAnswer {
  /** A regular expression that matches anywhere in the command. */
  readonly pattern: string;
  /** Matches only if stdin contains this text. Stdin is read to its end for that. */
  readonly stdinHas?: string;
  readonly status?: number;
  /** `{{instanceId}}`, `{{hostname}}`, `{{privateAddress}}`, `{{publicAddress}}` and `{{1}}` (the pattern's first group) are replaced. */
  readonly stdout?: string;
  readonly stderr?: string;
  readonly delayMs?: number;
  /** The machine generates a new host key, and prints the public key unless `stdout` is given. */
  readonly replaceHostKey?: boolean;
  /** Waits for the end of stdin first, like a command that reads all of it. */
  readonly readsStdin?: boolean;
}

export interface AnsweredCommand {
  readonly instanceId: string;
  readonly user: string;
  readonly command: string;
  readonly status: number;
}

const notScripted = 127;

/** The default handler of in-process machines: a table from command to answer. The first match wins. */
export class ScriptedAnswers {
  #answers: readonly (ScriptedAnswer & { readonly expression: RegExp })[] = [];
  readonly #begun: string[] = [];
  readonly #answered: AnsweredCommand[] = [];

  replace(answers: readonly ScriptedAnswer[]): void {
    this.#answers = answers.map((answer) => ({
      ...answer,
      expression: new RegExp(answer.pattern, "s"),
    }));
  }

  /** All commands, also those that still run. */
  get begun(): readonly string[] {
    return this.#begun;
  }

  /** All commands that were run, oldest first. */
  get answered(): readonly AnsweredCommand[] {
    return this.#answered;
  }

  readonly handle = async (exec: Exec, signal: AbortSignal): Promise<ExecResult> => {
    this.#begun.push(exec.command);
    const result = await this.#resultOf(exec, signal);
    const { user, command } = exec;
    this.#answered.push({
      instanceId: exec.machine.instanceId,
      user,
      command,
      status: result.status,
    });
    return result;
  };

  async #resultOf(exec: Exec, signal: AbortSignal): Promise<ExecResult> {
    for (const answer of this.#answers) {
      const match = answer.expression.exec(exec.command);
      if (match !== null && (await hasStdin(answer, exec)))
        return perform(answer, match[1] ?? "", exec, signal);
    }
    return {
      status: notScripted,
      stdout: "",
      stderr: `no answer is scripted for: ${exec.command}\n`,
    };
  }
}

async function hasStdin({ stdinHas }: ScriptedAnswer, { stdin }: Exec): Promise<boolean> {
  return stdinHas === undefined || Buffer.from(await stdin).includes(stdinHas);
}

async function perform(
  answer: ScriptedAnswer,
  group: string,
  exec: Exec,
  signal: AbortSignal,
): Promise<ExecResult> {
  if (answer.readsStdin === true) await exec.stdin;
  if (answer.delayMs !== undefined) await delay(answer.delayMs, undefined, { signal });
  const newKey =
    answer.replaceHostKey === true ? `${exec.machine.replaceHostKey(newHostKey())}\n` : "";
  return {
    status: answer.status ?? 0,
    stdout: filledIn(answer.stdout ?? newKey, group, exec),
    stderr: filledIn(answer.stderr ?? "", group, exec),
  };
}

/** A new ed25519 key in OpenSSH's private key format. */
export function newHostKey(): string {
  return generateKeyPair("host").privateKey;
}

function filledIn(text: string, group: string, { machine }: Exec): string {
  const values: Readonly<Record<string, string>> = {
    instanceId: machine.instanceId,
    hostname: machine.hostname,
    privateAddress: machine.privateAddress,
    publicAddress: machine.publicAddress,
    "1": group,
  };
  return text.replaceAll(/\{\{(\w+)\}\}/g, (whole, name: string) => values[name] ?? whole);
}
