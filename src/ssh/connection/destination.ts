import type { Target } from "./connection-errors.ts";

/** The part of a node's record that SSH needs; every NodeRecord is one. */
export interface Destination {
  readonly id: string;
  readonly role: string;
  readonly index: number;
  readonly ssh: { readonly host: string; readonly port: number; readonly user: string };
}

/** Returns the node as SSH and its messages need it. */
export function targetOf({ role, index, ssh }: Destination): Target {
  return { name: `${role}_${index}`, host: ssh.host, port: ssh.port, user: ssh.user };
}
