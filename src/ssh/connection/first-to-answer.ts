import { ClusterError } from "../../errors.ts";
import { eitherSignal } from "../either-signal.ts";
import { openSocket } from "./open-socket.ts";
import { type Destination, targetOf } from "./destination.ts";

/**
 * Returns the node whose SSH server greets first. It contacts all nodes concurrently without logging in, and returns a single node without contacting
 * it. Fails as `connection-failed`, transient, if none answers within `limitMs`.
 */
export async function firstToAnswer<Node extends Destination>(
  nodes: readonly [Node, ...Node[]],
  limitMs: number,
  signal: AbortSignal,
): Promise<Node> {
  if (nodes.length === 1) return nodes[0];
  const settled = new AbortController();
  using end = eitherSignal([signal, settled.signal, AbortSignal.timeout(limitMs)]);
  try {
    return await Promise.any(nodes.map((node) => answer(node, limitMs, end.signal)));
  } catch (error) {
    signal.throwIfAborted();
    throw noneAnswers(nodes, error);
  } finally {
    settled.abort(new Error("another node has answered"));
  }
}

/** An SSH server sends its greeting unprompted. https://www.rfc-editor.org/rfc/rfc4253#section-4.2 */
async function answer<Node extends Destination>(
  node: Node,
  connectTimeoutMs: number,
  signal: AbortSignal,
): Promise<Node> {
  const socket = await openSocket({ host: node.ssh.host, port: node.ssh.port, connectTimeoutMs }, signal);
  const greeting = Promise.withResolvers<Node>();
  const onAbort = (): void => greeting.reject(signal.reason);
  socket.once("data", () => greeting.resolve(node));
  socket
    .once("error", greeting.reject)
    .once("close", () => greeting.reject(new Error("closed without an SSH greeting")));
  signal.addEventListener("abort", onAbort);
  try {
    return await greeting.promise;
  } finally {
    signal.removeEventListener("abort", onAbort);
    socket.destroy();
  }
}

function noneAnswers(nodes: readonly Destination[], cause: unknown): ClusterError {
  const names = nodes.map((node) => targetOf(node).name);
  return new ClusterError("connection-failed", `None of ${names.join(", ")} answers over SSH.`, {
    transient: true,
    facts: { nodes: names },
    cause,
  });
}
