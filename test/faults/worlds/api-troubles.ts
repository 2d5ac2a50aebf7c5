/** How broken networks, proxies and services meet a request, as faults of the local cloud. */
import type { Fault, RawAnswer } from "../../local-cloud/endpoint/faults.ts";

export interface ApiFault extends Pick<Fault, "action" | "forMs" | "skip"> {
  readonly trouble: ApiTrouble;
  /** How many requests it strikes; without it and `forMs`, all. */
  readonly times?: Fault["times"];
}

export const cloudFault = ({ trouble, times = "always", ...rest }: ApiFault): Fault => ({
  ...rest,
  times,
  ...troubles[trouble],
});

const page = (status: number, title: string): { readonly raw: RawAnswer } => {
  const body = `<!doctype html><html><head><title>${title}</title></head><body></body></html>\n`;
  return { raw: { status, body, contentType: "text/html" } };
};

const troubles = {
  /** The connection is cut before the cloud hears of the request. */
  reset: { when: "before", lost: true },
  /** The cloud does what it is asked for, and the connection is cut instead of its answer. */
  "answer-lost": { when: "after", lost: true },
  /** As `answer-lost`, in the middle of the answer. */
  "answer-cut": { when: "after", cut: true },
  /** Status 200, and the first half of the answer as if it were all. */
  truncated: { when: "after", change: "first-half" },
  /** No answer at all. */
  hang: { when: "before", hangs: true },
  /** The cloud's answer, seconds later. */
  slow: { when: "before", delayMs: 3_000 },
  "half-tags": { when: "after", change: "half-tags" },
  "no-address": { when: "after", change: "no-address" },
  "no-machines": { when: "after", change: "no-machines" },
  /** The page of a captive portal, with status 200. */
  html: { when: "before", ...page(200, "Log in to the hotel's network") },
  /** Status 200 and not a byte. */
  empty: { when: "before", raw: { status: 200, body: "" } },
  /** Status 200, and XML that names nothing. */
  hollow: {
    when: "before",
    raw: {
      status: 200,
      body: '<ACTIONResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"/>',
    },
  },
  /** A load balancer's page. */
  unavailable: { when: "before", ...page(503, "503 Service Unavailable") },
  "bad-gateway": { when: "before", ...page(502, "502 Bad Gateway") },
  /** A proxy that wants a login. */
  "proxy-login": { when: "before", ...page(407, "407 Proxy Authentication Required") },
  /** A redirect to a login page. */
  redirect: {
    when: "before",
    raw: { status: 302, body: "", location: "http://127.0.0.1:9/login" },
  },
  throttled: { when: "before", code: "RequestLimitExceeded", message: "Request limit exceeded." },
  expired: { when: "before", code: "RequestExpired", message: "Request has expired." },
  "refused-key": {
    when: "before",
    code: "AuthFailure",
    message: "AWS was not able to validate the provided access credentials",
  },
  "internal-error": {
    when: "before",
    code: "InternalError",
    message: "An internal error has occurred",
  },
} as const satisfies Readonly<Record<string, Partial<Fault>>>;

export type ApiTrouble = keyof typeof troubles;
