import { type AuthContext, utils } from "ssh2";

/** Accepts a login only with a valid signature by one of these public keys, in the form of `authorized_keys`. */
export function answerLogin(context: AuthContext, authorizedLines: readonly string[]): void {
  if (isAllowed(context, authorizedLines)) context.accept();
  else context.reject(["publickey"]);
}

function isAllowed(context: AuthContext, authorizedLines: readonly string[]): boolean {
  if (context.method !== "publickey") return false;
  const offered = utils.parseKey(context.key.data);
  if (offered instanceof Error) return false;
  if (!authorizedLines.some((line) => isSameKey(line, context.key.data))) return false;
  // Without a signature, the client only asks whether the key is authorized.
  if (context.signature === undefined || context.blob === undefined) return true;
  // Contrary to its type, it may return an Error, which is truthy.
  const verdict: unknown = offered.verify(context.blob, context.signature, context.hashAlgo);
  return verdict === true;
}

function isSameKey(authorizedLine: string, offered: Buffer): boolean {
  const key = utils.parseKey(authorizedLine);
  return !(key instanceof Error) && key.getPublicSSH().equals(offered);
}
