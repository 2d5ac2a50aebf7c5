import { ClusterError, type ErrorId, systemReason } from "../../errors.ts";
import { outside } from "../../outside-text.ts";
import { plainLines } from "../../system/printable.ts";
import { eitherSignal, orAborted } from "../../system/time-limit.ts";
import { createToken } from "./session-line.ts";
import type { CommandEnd } from "./held-output.ts";
import type { SessionProof } from "./pass-output.ts";
import {
  type LoginMark,
  type SshMessages,
  createLoginMark,
  createSshMessages,
} from "./session-messages.ts";
import {
  type SessionRequest,
  type Ssh,
  brokenPipeStatus,
  carryInput,
  endRemoteProcesses,
  endSsh,
  sshFailed,
  startSsh,
} from "./ssh-process.ts";

export interface Session {
  /** Whether the node may have the command by now. If not, an abort ends the session before the node gets it. */
  mayHaveBegun(): boolean;
  /** Whether ssh has logged in by itself, so that the node has the command. */
  hasLoggedIn(): boolean;
  /** Resolves with whether the node may have the command, as soon as it may, or when ssh has ended. */
  readonly connected: Promise<boolean>;
  /** Resolves with the command's end, which may be never. Processes that it left may keep the session open. */
  readonly commandEnded: Promise<CommandEnd>;
  /** Never rejects. Resolves when ssh has ended. After an abort, that includes ending the remote processes. */
  readonly end: Promise<SshSessionEnd>;
}

export interface SessionEnd {
  /** Whether the node may have run a part of the command. If not, the command may be run elsewhere. */
  readonly hasBegun: boolean;
  /** Prints ssh's own messages if they help. Resolves with the exit status, or throws what `outcomes` says. */
  report(signal: AbortSignal): Promise<number>;
}

interface SshSessionEnd extends SessionEnd {
  /** Whether the server closed the connection in place of a greeting. Nothing of stdin has been read then. */
  readonly wasHungUp: boolean;
}

/** Runs a user's command through this machine's `ssh`. Throws `machine-not-set-up` if there is none. */
export function startSession(request: SessionRequest, signal: AbortSignal): Session {
  const transport = { token: createToken(), asRoot: request.sudo && request.loginUser !== "root" };
  const mark = createLoginMark(`${request.sshConfigFile}.${transport.token}`);
  const messages = createSshMessages(
    `${request.sshConfigFile}.${transport.token}.log`,
    request.stdio[2],
  );
  const mayBeShared = request.master?.hasSocket() === true;
  const ssh = startSsh(request, transport, { mark, messages }, signal);
  const mayHaveBegun = (): boolean => mark.isSet() || mayBeShared;
  const hasLoggedIn = (): boolean => mark.isSet();
  // A socket may have appeared after the look at it. Then only the node's own mark shows that the node has the command.
  const connected = untilConnected(() => mayHaveBegun() || ssh.proof.hasBegun(), ssh);
  const end = endOf({ request, ssh, mark, messages, mayBeShared, connected, mayHaveBegun }, signal);
  return { mayHaveBegun, hasLoggedIn, connected, commandEnded: ssh.proof.ended, end };
}

/** ssh's mark is a file in the cluster's own folder, so looking at it costs microseconds. */
async function untilConnected(isConnected: () => boolean, { ended }: Ssh): Promise<boolean> {
  while (!isConnected() && !ended.aborted) await Bun.sleep(lookMs);
  return isConnected();
}

const lookMs = 5;

interface Parts {
  readonly request: SessionRequest;
  readonly ssh: Ssh;
  readonly mark: LoginMark;
  readonly messages: SshMessages;
  /** Whether there was a master connection when ssh started. Over one, ssh sets no mark. */
  readonly mayBeShared: boolean;
  readonly connected: Promise<boolean>;
  mayHaveBegun(): boolean;
}

async function endOf(parts: Parts, signal: AbortSignal): Promise<SshSessionEnd> {
  await using mark = parts.mark;
  await using messages = parts.messages;
  const { request } = parts;
  const end = await whatSshDid(parts, signal);
  const node = await whatNodeHas(end, parts);
  await orAborted(parts.ssh.proof.passed, signal).catch(() => {});
  if (end.ssh === "ended" && mark.isSet())
    request.master?.open(request.sshConfigFile, request.host);
  return {
    hasBegun: node === "command",
    wasHungUp: end.ssh === "failed" && node === "nothing" && messages.tellHangUp(),
    report: async (reportSignal) => {
      const { proof } = parts.ssh;
      const proved =
        node === "nothing" ? node : provedBy(proof, request.terminal && end.ssh === "ended");
      if (end.ssh !== "stopped" && proof.loss() !== undefined) throw outputLost(proof.loss());
      if (end.ssh !== "stopped" && proved === "begun" && proof.isUnread()) return brokenPipeStatus;
      const reason = await reasonOf(end, proved, parts, reportSignal);
      const facts = { ssh: end.ssh, node: proved, reason, noise: proof.noise() };
      const outcome = outcomes.find((row) => fits(row, facts));
      if (outcome?.shows === true) await messages.release(reportSignal);
      if (outcome?.error !== undefined) throw outcome.error(request.host, facts);
      // On a terminal, only ssh reports it.
      return proof.end()?.status ?? (end.ssh === "ended" ? end.status : sshFailed);
    },
  };
}

const outputLost = (cause: unknown): ClusterError =>
  new ClusterError("output-lost", `Cannot write the command's output: ${systemReason(cause)}.`, {
    hint: "Check where stdout is redirected. The command has run, at least in part.",
    cause,
  });

/**
 * How ssh ended. `failed`: its status was 255, which may also be the command's own. `stopped`: this
 * program ended it.
 */
type SshEnd =
  | { readonly ssh: "ended"; readonly status: number }
  | { readonly ssh: "failed" }
  | { readonly ssh: "killed"; readonly reason: unknown }
  | { readonly ssh: "stopped"; readonly reason: unknown };

interface Facts {
  readonly ssh: SshEnd["ssh"];
  /**
   * What is known about the command: ssh did not log in; the node did not prove that the command
   * has begun; it proved no end; it proved both.
   */
  readonly node: "nothing" | "silent" | "begun" | "ended";
  /** Why this program stopped ssh, or why the node can't be reached or runs no commands now; undefined if it does. */
  readonly reason: unknown;
  /** What the node has printed instead of the command's output. */
  readonly noise: string;
}

interface Outcome {
  readonly ssh: SshEnd["ssh"];
  /** Matches this state of the node; absent: any. */
  readonly node?: Facts["node"];
  /** Matches this id of the reason; absent: any. */
  readonly reason?: ErrorId | "none";
  /** Whether the user sees ssh's own messages. For a changed host key, ssh would advise to delete the pinned one. */
  readonly shows: boolean;
  /** Absent: the command's exit status is the result. */
  readonly error?: (host: string, facts: Facts) => unknown;
}

const itsReason = (_host: string, { reason }: Facts): unknown => reason;

/**
 * Every outcome of a session: how ssh ended, the state of the node, and what the user sees. The
 * first row that fits counts.
 */
const outcomes: readonly Outcome[] = [
  { ssh: "ended", node: "ended", shows: true },
  { ssh: "killed", shows: true, error: itsReason },
  { ssh: "stopped", reason: "host-key-changed", shows: false, error: itsReason },
  { ssh: "stopped", shows: true, error: itsReason },
  { ssh: "failed", node: "ended", shows: true },
  { ssh: "failed", reason: "host-key-changed", shows: false, error: itsReason },
  { ssh: "failed", node: "nothing", reason: "key-missing", shows: false, error: itsReason },
  { ssh: "failed", node: "nothing", reason: "cluster-not-found", shows: false, error: itsReason },
  { ssh: "failed", node: "nothing", shows: true, error: loginFailed },
  ...(["ended", "failed"] as const).flatMap((ssh): Outcome[] => [
    { ssh, node: "silent", reason: "remote-command-failed", shows: true, error: itsReason },
    { ssh, node: "silent", reason: "none", shows: true, error: notBegun },
    { ssh, node: "begun", reason: "none", shows: true, error: endUnknown },
    { ssh, shows: true, error: nodeGone },
  ]),
];

function fits(row: Outcome, { ssh, node, reason }: Facts): boolean {
  const id = reason instanceof ClusterError ? reason.id : reason === undefined ? "none" : "other";
  return row.ssh === ssh && (row.node ?? node) === node && (row.reason ?? id) === id;
}

async function whatSshDid(
  { request, ssh, connected }: Parts,
  signal: AbortSignal,
): Promise<SshEnd> {
  using end = eitherSignal([signal, ssh.ended]);
  const carried = carryInput(ssh, request, { connected }, end.signal);
  try {
    // Once the script is on its way only a failure to deliver it matters; ssh reports the outcome.
    const status = await orAborted(
      Promise.race([ssh.status, carried.then(() => ssh.status)]),
      signal,
    );
    if (status !== sshFailed) return { ssh: "ended", status };
    // ssh also ends this way after an interrupt from the keyboard, perhaps before this program receives it.
    await orAborted(Bun.sleep(interruptDelayMs), signal);
    const { signalCode } = ssh.child;
    return signalCode === null
      ? { ssh: "failed" }
      : { ssh: "killed", reason: sshKilled(signalCode) };
  } catch (reason) {
    return { ssh: "stopped", reason };
  }
}

async function whatNodeHas({ ssh }: SshEnd, parts: Parts): Promise<"nothing" | "command"> {
  if (ssh === "ended") return "command";
  if (ssh !== "failed") return stop(parts);
  const { request, mark, messages, mayBeShared } = parts;
  // An ssh that tried to log in by itself either set the mark or wrote why it failed.
  const isShared = (mayBeShared || request.master?.hasSocket() === true) && messages.isEmpty();
  return mark.isSet() || isShared ? "command" : "nothing";
}

/** A shell that could not start the command, such as one that sudo refuses, ends as well. */
function provedBy(proof: SessionProof, isEndReported: boolean): Facts["node"] {
  if (!proof.hasBegun()) return "silent";
  return proof.end() === undefined && !isEndReported ? "begun" : "ended";
}

async function reasonOf(
  end: SshEnd,
  node: Facts["node"],
  { request, mark }: Parts,
  signal: AbortSignal,
): Promise<unknown> {
  if (end.ssh === "killed" || end.ssh === "stopped") return end.reason;
  if (node === "ended") return undefined;
  const reason = await whyUnreachable(request, signal);
  signal.throwIfAborted();
  const isShared = end.ssh === "failed" && node !== "nothing" && !mark.isSet();
  const isLost = reason === undefined && isShared && (await request.master?.isAlive()) !== true;
  return isLost ? nodeGone(request.host) : reason;
}

const interruptDelayMs = 50;
const answerGraceMs = 5_000;

/**
 * Ends ssh, and whatever it started on the node. Returns what the node had by then: without a
 * login, ssh has sent nothing.
 */
async function stop(parts: Parts): Promise<"nothing" | "command"> {
  const { request, ssh, mayHaveBegun } = parts;
  if (!mayHaveBegun()) await endSsh(ssh);
  if (!mayHaveBegun()) return "nothing";
  // Without a terminal, ending ssh alone would leave the remote processes running.
  await endRemoteProcesses(ssh, request);
  await endSsh(ssh);
  return "command";
}

/**
 * Called if the node did not prove how the command ended: below LogLevel INFO, ssh prints nothing
 * about a node that falls silent. Undefined if the node answers, and runs a command.
 */
async function whyUnreachable(request: SessionRequest, signal: AbortSignal): Promise<unknown> {
  using grace = eitherSignal([signal, AbortSignal.timeout(answerGraceMs)]);
  try {
    const connection = await request.connect(grace.signal);
    await connection.run({ argv: ["true"], sudo: request.sudo }, grace.signal);
    return undefined;
  } catch (error) {
    return error;
  }
}

const sshKilled = (signalName: NodeJS.Signals | number): ClusterError =>
  new ClusterError("connection-failed", `ssh was killed by ${signalName}.`, {
    hint: "Something on this computer killed it, for example because memory ran out. The command on the node was told to stop.",
  });

function loginFailed(host: string): ClusterError {
  return new ClusterError(
    "connection-failed",
    `ssh could not log in to ${host}; nothing was run on it.`,
    {
      facts: { node: host },
    },
  );
}

const longestWord = 200;

/** For a node on which another try works. */
function notBegun(host: string, { noise }: Facts): ClusterError {
  const line = plainLines(noise, 1, longestWord)[0];
  const words = line === undefined ? "" : ` It printed ${outside(JSON.stringify(line))}.`;
  return new ClusterError(
    "remote-command-failed",
    `${host} ended the session before the command began.${words}`,
    {
      hint: "Try again. If this happens again, check the start-up files of the login shell and the sshd_config on that node.",
      facts: { node: host },
    },
  );
}

function endUnknown(host: string): ClusterError {
  const message = `${host} ended the session before the command ended; it is not known whether the command finished.`;
  return new ClusterError("remote-command-failed", message, {
    hint: "Something on the node ended the command's shell: check its logs.",
    facts: { node: host },
  });
}

function nodeGone(host: string): ClusterError {
  const message = `${host} no longer answers; it is not known whether the command finished.`;
  return new ClusterError("connection-failed", message, { facts: { node: host } });
}
