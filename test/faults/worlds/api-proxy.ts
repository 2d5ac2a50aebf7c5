/** Stands between the program and the local cloud, and answers some requests as broken networks, proxies and services do. */
import type { Struck } from "../fault.ts";
import { cannedAnswer, type CannedTrouble } from "./canned-answers.ts";

/** How a request is met instead of by the cloud's answer. */
export type ApiTrouble =
  | CannedTrouble
  /** The connection is cut before the cloud hears of the request. */
  | "reset"
  /** The cloud does what it is asked for, and the connection is cut instead of its answer. */
  | "answer-lost"
  /** As `answer-lost`, in the middle of the answer. */
  | "answer-cut"
  /** Status 200, and the first half of the answer as if it were all. */
  | "truncated"
  /** No answer at all. */
  | "hang"
  /** The cloud's answer, seconds later. */
  | "slow"
  /** The cloud's answer with every second tag of each machine. */
  | "half-tags"
  /** The cloud's answer without public addresses. */
  | "no-address"
  /** The cloud's answer, which names no machine. */
  | "no-machines";

export interface ApiFault {
  /** An action's name, or `*`. */
  readonly action: string;
  readonly trouble: ApiTrouble;
  /** How many requests it strikes; without it and `forMs`, all. */
  readonly times?: number;
  /** How long it lasts, from the first request that it strikes. */
  readonly forMs?: number;
  /** Matching requests that pass first. */
  readonly skip?: number;
}

interface Planned {
  readonly fault: ApiFault;
  skipsLeft: number;
  timesLeft: number;
  endsAtMs: number | undefined;
  hasStruck: boolean;
}

const slowMs = 3_000;

export class ApiProxy implements AsyncDisposable {
  readonly #target: string;
  readonly #server: Bun.Server<undefined>;
  readonly #closing = Promise.withResolvers<void>();
  #planned: Planned[] = [];

  constructor(target: string) {
    this.#target = target;
    this.#server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      idleTimeout: 0,
      fetch: async (request) => this.#answer(request),
    });
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.#server.port}`;
  }

  /** What it returns says whether all of them have struck, and clears them. */
  add(...faults: readonly ApiFault[]): Struck {
    const added = faults.map((fault): Planned => {
      const { times = Number.POSITIVE_INFINITY, skip = 0 } = fault;
      return { fault, skipsLeft: skip, timesLeft: times, endsAtMs: undefined, hasStruck: false };
    });
    this.#planned.push(...added);
    return {
      hasStruck: () => added.every(({ hasStruck }) => hasStruck),
      [Symbol.asyncDispose]: async () => {
        this.#planned = this.#planned.filter((planned) => !added.includes(planned));
      },
    };
  }

  clear(): void {
    this.#planned = [];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.resolve();
    await this.#server.stop(true);
  }

  async #answer(request: Request): Promise<Response> {
    const body = await request.text();
    const action = new URLSearchParams(body).get("Action") ?? "";
    const trouble = this.#troubleFor(action);
    if (trouble === undefined) return this.#forward(request, body);
    return this.#meet(trouble, action, async () => this.#forward(request, body));
  }

  /** The host header stays as it is, since it is signed. */
  async #forward(request: Request, body: string): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    const { method, headers } = request;
    const answer = await fetch(`${this.#target}${pathname}${search}`, { method, headers, body });
    return new Response(await answer.text(), { status: answer.status, headers: plainHeaders(answer) });
  }

  #troubleFor(action: string): ApiTrouble | undefined {
    const now = performance.now();
    const found = this.#planned.find(
      ({ fault, timesLeft, endsAtMs }) =>
        (fault.action === "*" || fault.action === action) &&
        timesLeft > 0 &&
        (endsAtMs === undefined || now < endsAtMs),
    );
    if (found === undefined) return undefined;
    if (found.skipsLeft > 0) {
      found.skipsLeft -= 1;
      return undefined;
    }
    found.timesLeft -= 1;
    found.hasStruck = true;
    if (found.fault.forMs !== undefined) found.endsAtMs ??= now + found.fault.forMs;
    return found.fault.trouble;
  }

  async #meet(trouble: ApiTrouble, action: string, forward: () => Promise<Response>): Promise<Response> {
    switch (trouble) {
      case "reset":
        return cut("");
      case "answer-lost":
        await forward();
        return cut("");
      case "answer-cut":
        return cut(firstHalf(await (await forward()).text()));
      case "truncated": {
        const answer = await forward();
        return new Response(firstHalf(await answer.text()), { status: answer.status, headers: plainHeaders(answer) });
      }
      case "hang":
        await this.#closing.promise;
        return cut("");
      case "slow":
        await Bun.sleep(slowMs);
        return forward();
      case "half-tags":
      case "no-address":
      case "no-machines":
        return changed(await forward(), trouble);
      default:
        return cannedAnswer(trouble, action);
    }
  }
}

async function changed(answer: Response, trouble: "half-tags" | "no-address" | "no-machines"): Promise<Response> {
  const text = await answer.text();
  const headers = plainHeaders(answer);
  return new Response(changes[trouble](text), { status: answer.status, headers });
}

const changes = {
  "half-tags": (text: string) =>
    text.replaceAll(/<tagSet>(.*?)<\/tagSet>/gs, (_, tags: string) => `<tagSet>${everySecond(tags)}</tagSet>`),
  "no-address": (text: string) => text.replaceAll(/<ipAddress>[^<]*<\/ipAddress>/g, ""),
  "no-machines": (text: string) => text.replace(/<instancesSet>.*<\/instancesSet>/s, "<instancesSet></instancesSet>"),
} as const;

const everySecond = (tags: string): string =>
  (tags.match(/<item>.*?<\/item>/gs) ?? []).filter((_, index) => index % 2 === 0).join("");

const firstHalf = (text: string): string => text.slice(0, Math.floor(text.length / 2));

function plainHeaders(answer: Response): Headers {
  const headers = new Headers(answer.headers);
  for (const name of ["content-encoding", "content-length", "transfer-encoding", "connection"]) headers.delete(name);
  return headers;
}

/** Bun closes the connection without the rest when the body fails. */
function cut(first: string): Response {
  return new Response(
    new ReadableStream({
      start: async (controller) => {
        if (first !== "") {
          controller.enqueue(first);
          await Bun.sleep(50);
        }
        controller.error();
      },
    }),
  );
}
