import { ClusterError, quoted } from "../../errors.ts";
import { errorCode } from "../../system/error-code.ts";
import { outsideLine } from "../../system/printable.ts";
import { minimalEnvironment } from "../../system/processes/child-environment.ts";
import { type ProgramEnd, runProgram } from "../../system/processes/run-program.ts";
import type { Environment } from "../../system/runtime.ts";

/**
 * Encrypts a text for these recipients with `age` (https://age-encryption.org), as text. Throws `machine-not-set-up` if age is not installed, and
 * `bad-usage` if it refuses a recipient.
 */
export async function encrypt(
  text: string,
  recipients: readonly string[],
  environment: Environment,
  signal: AbortSignal,
): Promise<string> {
  const words = recipients.flatMap((recipient) => ["-r", recipient]);
  const run = { argv: ["age", "-e", "-a", ...words], stdin: text } as const;
  const { status, stdout, stderr } = await runAge({ ...run, environment: minimalEnvironment(environment) }, signal);
  if (status === 0) return stdout;
  const [reason = ""] = stderr.split("\n");
  throw new ClusterError(
    "bad-usage",
    `age cannot encrypt for ${recipients.map(quoted).join(", ")}: ${outsideLine(reason)}`,
    {
      hint: "Pass a public key that age accepts: age1…, ssh-ed25519 … or ssh-rsa …",
    },
  );
}

async function runAge(run: Parameters<typeof runProgram>[0], signal: AbortSignal): Promise<ProgramEnd> {
  try {
    return await runProgram(run, signal);
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw error;
    throw new ClusterError("machine-not-set-up", "There is no age on this machine's PATH.", {
      hint: "Install age (https://age-encryption.org), or export without a recipient.",
      cause: error,
    });
  }
}
