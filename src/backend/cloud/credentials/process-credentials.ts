import { OwnError } from "../../../errors.ts";
import * as read from "../../../model/reader.ts";
import { outside } from "../../../outside-text.ts";
import { parseJson } from "../../../system/files/read-text.ts";
import { runProgram } from "../../../system/processes/run-program.ts";
import type { Environment } from "../../../system/runtime.ts";
import type { Identity } from "./machine-role.ts";

/**
 * Runs the `credential_process` of a profile, with the shell as the cloud's own tools do. The SDK
 * would keep its stdin open for ever, so that one which reads it never ends, and would pass on this
 * process's own variables.
 * https://docs.aws.amazon.com/sdkref/latest/guide/feature-process-credentials.html
 */
export async function runCredentialProcess(
  profile: string,
  command: string,
  environment: Environment,
): Promise<Identity> {
  const { signal } = new AbortController();
  const { status, stdout, stderr } = await runProgram(
    { argv: ["/bin/sh", "-c", command], environment, asksPerson: true, keptCharacters: mostOutput },
    signal,
  );
  const what = `the credential_process of profile "${profile}"`;
  if (status !== 0) {
    const end = status === undefined ? "was ended by a signal" : `ended with status ${status}`;
    const said = stderr.trim() === "" ? "" : `: ${outside(stderr.trim())}`;
    throw new OwnError(`${what} ${end}${said}`);
  }
  const answer = readAnswer(parseJson(stdout.trim()));
  if (answer === undefined)
    throw new OwnError(`${what} must print JSON with Version 1, AccessKeyId and SecretAccessKey`);
  const { AccessKeyId: accessKeyId, SecretAccessKey: secretAccessKey } = answer;
  const { SessionToken: sessionToken, Expiration: expiration } = answer;
  if (expiration !== undefined && expiration.getTime() < Date.now())
    throw new OwnError(`${what} gave credentials that have expired`);
  return {
    accessKeyId,
    secretAccessKey,
    ...(sessionToken !== undefined && sessionToken !== "" && { sessionToken }),
    ...(expiration !== undefined && { expiration }),
  };
}

const mostOutput = 1024 * 1024;

/** These tools write moments in more forms than one. */
const moment = read.refined(read.string, (text) => {
  const found = new Date(text);
  return Number.isNaN(found.getTime()) ? undefined : found;
});

const readAnswer = read.object({
  Version: read.oneOf(1),
  AccessKeyId: read.string,
  SecretAccessKey: read.string,
  SessionToken: read.lenient(read.string),
  Expiration: read.lenient(moment),
});
