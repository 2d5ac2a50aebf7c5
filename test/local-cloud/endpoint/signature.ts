import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { Ec2Error } from "./ec2-error.ts";

/** A key pair that the endpoint knows. `expired` keys belong to a session that has expired. */
export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  readonly accountId: string;
  readonly expired: boolean;
}

export interface SignedRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: Headers;
  readonly body: string;
}

export interface Caller {
  readonly credentials: Credentials;
  readonly region: string;
}

const allowedClockDifferenceMs = 5 * 60_000;
const authorizationForm =
  /^AWS4-HMAC-SHA256 Credential=([^/,]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/;

/**
 * Verifies Signature Version 4, and returns the caller and the region.
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
 */
export function authenticate(
  request: SignedRequest,
  known: readonly Credentials[],
  now: Date,
): Caller {
  const match = authorizationForm.exec(request.headers.get("authorization") ?? "");
  if (match === null) throw notAuthenticated();
  const [, accessKeyId, day, region, service, signedHeaders, signature] =
    match as unknown as string[];
  const credentials = known.find((one) => one.accessKeyId === accessKeyId);
  if (credentials === undefined || service !== "ec2") throw notAuthenticated();
  const time = request.headers.get("x-amz-date") ?? "";
  if (!time.startsWith(day!)) throw wrongSignature();
  const scope = `${day}/${region}/ec2/aws4_request`;
  const text = textToSign(canonicalRequest(request, signedHeaders!.split(";")), time, scope);
  const expected = sign(signingKey(credentials.secretAccessKey, day!, region!), text).toString(
    "hex",
  );
  if (!timingSafeEqual(Buffer.from(expected), Buffer.from(signature!))) throw wrongSignature();
  checkTime(time, now);
  checkToken(request, credentials);
  return { credentials, region: region! };
}

function canonicalRequest(request: SignedRequest, signedHeaders: readonly string[]): string {
  if (!signedHeaders.includes("host") || !signedHeaders.includes("x-amz-date"))
    throw wrongSignature();
  const headers = signedHeaders
    .map((name) => `${name}:${(request.headers.get(name) ?? "").trim()}\n`)
    .join("");
  const query = [...request.url.searchParams]
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
    .toSorted()
    .join("&");
  const bodyHash = sha256(request.body);
  const declaredHash = request.headers.get("x-amz-content-sha256") ?? bodyHash;
  if (declaredHash !== bodyHash) throw wrongSignature();
  return [
    request.method,
    request.url.pathname,
    query,
    headers,
    signedHeaders.join(";"),
    bodyHash,
  ].join("\n");
}

function textToSign(canonical: string, time: string, scope: string): string {
  return ["AWS4-HMAC-SHA256", time, scope, sha256(canonical)].join("\n");
}

function signingKey(secret: string, day: string, region: string): Buffer {
  return sign(sign(sign(sign(`AWS4${secret}`, day), region), "ec2"), "aws4_request");
}

function sign(key: string | Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text, "utf8").digest();
}

function sha256(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}

function checkTime(time: string, now: Date): void {
  const signed = Date.parse(
    time.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"),
  );
  if (!(Math.abs(signed - now.getTime()) <= allowedClockDifferenceMs)) {
    throw new Ec2Error("RequestExpired", "Request has expired.");
  }
}

function checkToken(request: SignedRequest, credentials: Credentials): void {
  const token = request.headers.get("x-amz-security-token") ?? undefined;
  if (token !== credentials.sessionToken) throw notAuthenticated();
  if (credentials.expired) throw new Ec2Error("RequestExpired", "Request has expired.");
}

function notAuthenticated(): Ec2Error {
  return new Ec2Error(
    "AuthFailure",
    "AWS was not able to validate the provided access credentials",
  );
}

function wrongSignature(): Ec2Error {
  return new Ec2Error(
    "SignatureDoesNotMatch",
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details.",
  );
}
