import type { Target } from "./connection-errors.ts";
import type { Destination } from "./pool.ts";

/** Returns the node as SSH and its messages need it. */
export function targetOf({ role, index, ssh }: Destination): Target {
  return { name: `${role}_${index}`, host: ssh.host, port: ssh.port, user: ssh.user };
}
