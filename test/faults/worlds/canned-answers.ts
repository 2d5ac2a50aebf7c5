/** Answers that a proxy, a portal or a service in trouble gives, whatever it is asked. */

export type CannedTrouble =
  /** The page of a captive portal, with status 200. */
  | "html"
  /** Status 200 and not a byte. */
  | "empty"
  /** Status 200, and XML that names nothing. */
  | "hollow"
  /** A load balancer's page, with status 503. */
  | "unavailable"
  | "bad-gateway"
  /** A proxy that wants a login. */
  | "proxy-login"
  /** A redirect to a login page. */
  | "redirect"
  | "throttled"
  | "expired"
  | "refused-key"
  | "denied"
  | "internal-error";

const page = (title: string): string =>
  `<!doctype html><html><head><title>${title}</title></head><body></body></html>\n`;
const xml = { "content-type": "text/xml;charset=UTF-8" };
const html = { "content-type": "text/html" };

export function cannedAnswer(trouble: CannedTrouble, action: string): Response {
  switch (trouble) {
    case "html":
      return new Response(page("Log in to the hotel's network"), { headers: html });
    case "empty":
      return new Response("", { headers: xml });
    case "hollow":
      return new Response(`<${action}Response xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"/>`, { headers: xml });
    case "unavailable":
      return new Response(page("503 Service Unavailable"), { status: 503, headers: html });
    case "bad-gateway":
      return new Response(page("502 Bad Gateway"), { status: 502, headers: html });
    case "proxy-login":
      return new Response(page("407 Proxy Authentication Required"), { status: 407, headers: html });
    case "redirect":
      return new Response("", { status: 302, headers: { location: "http://127.0.0.1:9/login" } });
    case "throttled":
      return refusal(503, "RequestLimitExceeded", "Request limit exceeded.");
    case "expired":
      return refusal(400, "RequestExpired", "Request has expired.");
    case "refused-key":
      return refusal(401, "AuthFailure", "AWS was not able to validate the provided access credentials");
    case "denied":
      return refusal(403, "UnauthorizedOperation", "You are not authorized to perform this operation.");
    case "internal-error":
      return refusal(500, "InternalError", "An internal error has occurred");
  }
}

function refusal(status: number, code: string, message: string): Response {
  const body = `<?xml version="1.0" encoding="UTF-8"?>\n<Response><Errors><Error><Code>${code}</Code><Message>${message}</Message></Error></Errors><RequestID>00000000-0000-0000-0000-000000000000</RequestID></Response>`;
  return new Response(body, { status, headers: xml });
}
