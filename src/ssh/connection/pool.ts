import type { Connection } from "./connection.ts";

/** The part of a node's record that SSH needs; every NodeRecord is one. */
export interface Destination {
  readonly id: string;
  readonly role: string;
  readonly index: number;
  readonly ssh: { readonly host: string; readonly port: number; readonly user: string };
}

/** The open connections of one cluster, one per node: opened when first needed, and reopened after a loss. */
export interface ConnectionPool extends AsyncDisposable {
  /** Returns the node's connection, which callers may share. Fails as `connection-failed` (transient), `host-key-changed` or `key-missing`. */
  connect(node: Destination, signal: AbortSignal): Promise<Connection>;
  /** Takes over a connection that was opened for first contact. */
  adopt(node: Destination, connection: Connection): void;
}
