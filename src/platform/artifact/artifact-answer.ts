import { artifactUnreachable, requestFailure } from "./artifact-failure.ts";

/** The part of the artifact that an answer's body holds. */
export interface AnswerExtent {
  /** Position of the body's first byte in the artifact. */
  readonly offset: number;
  /** Size of the whole artifact; undefined if the server doesn't send it. */
  readonly totalBytes: number | undefined;
  /** Identifies this exact file in a later request for the rest; undefined if the server sends nothing reliable. */
  readonly validator: string | undefined;
}

/** Reads the extent from the headers of a 200 or 206. */
export function answerExtent(response: Response, shown: string): AnswerExtent {
  const { headers } = response;
  const entityTag = headers.get("etag");
  const validator = (entityTag?.startsWith('"') === true ? entityTag : headers.get("last-modified")) ?? undefined;
  if (response.status !== 206) return { offset: 0, totalBytes: plainLength(headers), validator };
  const [, offset, total] = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(headers.get("content-range") ?? "") ?? [];
  if (offset === undefined)
    throw artifactUnreachable(shown, "the server sent part of it without a Content-Range header.", {});
  return { offset: Number(offset), totalBytes: total === "*" ? undefined : Number(total), validator };
}

/** Yields the body's chunks; leaving the loop ends the transfer. Fails as `artifact-unreachable`, transient, if the body breaks off. */
export async function* answerBody(
  response: Response,
  shown: string,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (response.body === null) return;
  try {
    yield* response.body;
  } catch (error) {
    signal.throwIfAborted();
    throw requestFailure(shown, error);
  }
}

/** Undefined if the body is encoded although the request asked for no encoding: the length then counts the encoded bytes. */
function plainLength(headers: Headers): number | undefined {
  const length = headers.get("content-length");
  const encoding = headers.get("content-encoding") ?? "identity";
  return length === null || encoding !== "identity" ? undefined : Number(length);
}
