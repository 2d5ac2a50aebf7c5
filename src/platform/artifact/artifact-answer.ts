import { artifactUnreachable, requestFailure } from "./artifact-failure.ts";

/** Which part of the artifact an answer's body holds. */
export interface AnswerExtent {
  /** Of the first byte in the body. */
  readonly offset: number;
  /** Of the whole artifact; undefined where the server does not say. */
  readonly totalBytes: number | undefined;
  /** What a later request can name to get the rest of the very same file; undefined where the server gives nothing that is sure. */
  readonly validator: string | undefined;
}

/** Reads it from the headers of a 200 or 206. */
export function answerExtent(response: Response, shown: string): AnswerExtent {
  const { headers } = response;
  const entityTag = headers.get("etag");
  const validator = (entityTag?.startsWith('"') === true ? entityTag : headers.get("last-modified")) ?? undefined;
  if (response.status !== 206) return { offset: 0, totalBytes: plainLength(headers), validator };
  const [, offset, total] = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(headers.get("content-range") ?? "") ?? [];
  if (offset === undefined) throw artifactUnreachable(shown, "the server sent a part of it without saying which.", {});
  return { offset: Number(offset), totalBytes: total === "*" ? undefined : Number(total), validator };
}

/** The body's chunks; leaving the loop ends the transfer. A body that breaks off fails as `artifact-unreachable`, transient. */
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

/** Undefined for a body that is sent encoded in spite of our wish: the length counts the encoded bytes. */
function plainLength(headers: Headers): number | undefined {
  const length = headers.get("content-length");
  const encoding = headers.get("content-encoding") ?? "identity";
  return length === null || encoding !== "identity" ? undefined : Number(length);
}
