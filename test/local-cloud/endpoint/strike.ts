/** What scripted faults do to a request and to its response. */
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { Ec2Error } from "./ec2-error.ts";
import type { AnswerChange, Fault, RawAnswer } from "./faults.ts";

/** Thrown if a fault replaces the response. */
export class AnswerReplaced extends Error {
  readonly outcome: "lost" | "raw";
  readonly response: Response;

  constructor(outcome: "lost" | "raw", response: Response) {
    super(outcome);
    this.outcome = outcome;
    this.response = response;
  }
}

/** `left` is aborted when the client disconnects. */
export async function strike(
  fault: Fault | undefined,
  action: string,
  left: AbortSignal,
): Promise<void> {
  if (fault === undefined) return;
  if (fault.delayMs !== undefined) await delay(fault.delayMs);
  if (fault.hangs === true && !left.aborted) await once(left, "abort");
  if (fault.lost === true || fault.hangs === true)
    throw new AnswerReplaced("lost", cutConnection(""));
  if (fault.raw !== undefined) throw new AnswerReplaced("raw", rawResponse(fault.raw, action));
  if (fault.code !== undefined)
    throw new Ec2Error(fault.code, fault.message ?? `Scripted by a test: ${fault.code}`);
}

/** Changes a response as a fault that struck after the action says. */
export function changedAnswer(xml: string, fault: Fault | undefined): string {
  if (fault?.cut === true) throw new AnswerReplaced("lost", cutConnection(firstHalf(xml)));
  return fault?.change === undefined ? xml : changes[fault.change](xml);
}

const changes = {
  /** The first half, as if it were all. */
  "first-half": (xml: string) => firstHalf(xml),
  /** Every second tag of each machine. */
  "half-tags": (xml: string) =>
    xml.replaceAll(
      /<tagSet>(.*?)<\/tagSet>/gs,
      (_, tags: string) => `<tagSet>${everySecond(tags)}</tagSet>`,
    ),
  /** No public addresses. */
  "no-address": (xml: string) => xml.replaceAll(/<ipAddress>[^<]*<\/ipAddress>/g, ""),
  /** No machine. */
  "no-machines": (xml: string) =>
    xml.replace(/<instancesSet>.*<\/instancesSet>/s, "<instancesSet></instancesSet>"),
} as const satisfies Readonly<Record<AnswerChange, (xml: string) => string>>;

const everySecond = (tags: string): string =>
  (tags.match(/<item>.*?<\/item>/gs) ?? []).filter((_, index) => index % 2 === 0).join("");

const firstHalf = (text: string): string => text.slice(0, Math.floor(text.length / 2));

function rawResponse(
  { status, body, contentType = "text/xml", location }: RawAnswer,
  action: string,
): Response {
  const headers = {
    "Content-Type": contentType,
    ...(location !== undefined && { Location: location }),
  };
  return new Response(body.replaceAll("ACTION", action), { status, headers });
}

/** If a body fails, Bun closes the connection: before its first byte, without a response. */
function cutConnection(first: string): Response {
  const start = async (controller: ReadableStreamDefaultController): Promise<void> => {
    if (first !== "") {
      controller.enqueue(first);
      await delay(50);
    }
    controller.error();
  };
  return new Response(new ReadableStream({ start }), {
    headers: { "Content-Type": "text/xml;charset=UTF-8" },
  });
}
