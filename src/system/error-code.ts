/**
 * The code (`ENOENT`, `ECONNRESET`, …) of a runtime error. Bun puts it on the error itself, Node's fetch on its cause.
 */
export function errorCode(error: unknown): string | undefined {
  for (const candidate of [error, error instanceof Error ? error.cause : undefined]) {
    if (candidate instanceof Error && "code" in candidate && typeof candidate.code === "string") return candidate.code;
  }
  return undefined;
}
