import { expect, test } from "bun:test";
import {
  callFailure,
  encodedMessage,
  failureCode,
  wasRefused,
} from "../../../../../src/backend/cloud/api/api-errors.ts";

const context = {
  action: "RunInstances",
  region: "us-west-2",
  credentialSource: 'profile "dev" (CLOUD_PROFILE)',
  renewal: "Renew the session with: aws sso login --profile dev",
  clockOffSeconds: 2,
  endpoint: undefined,
  proxy: undefined,
};

function answer(code: string, message: string, httpStatusCode = 400): Error {
  return Object.assign(new Error(message), {
    name: code,
    $metadata: { httpStatusCode, requestId: "r-1" },
  });
}

test.each([
  ["AuthFailure", "credentials-refused"],
  ["InvalidClientTokenId", "credentials-refused"],
  ["SignatureDoesNotMatch", "credentials-refused"],
  ["ExpiredToken", "credentials-refused"],
  ["RequestExpired", "credentials-refused"],
  ["UnauthorizedOperation", "not-permitted"],
  ["OptInRequired", "region-not-enabled"],
  ["VcpuLimitExceeded", "capacity-lacking"],
  ["InstanceLimitExceeded", "capacity-lacking"],
  ["InsufficientInstanceCapacity", "capacity-lacking"],
  ["InvalidAMIID.NotFound", "image-not-found"],
  ["InvalidAMIID.Malformed", "image-not-found"],
  ["VPCIdNotSpecified", "no-default-network"],
  ["InvalidSubnetID.NotFound", "no-default-network"],
  ["RequestLimitExceeded", "cloud-failed"],
  ["InvalidParameterValue", "cloud-failed"],
  ["InternalError", "cloud-failed"],
  ["SomethingNew", "cloud-failed"],
] as const)("%s becomes %s", (code, id) => {
  const failure = callFailure(answer(code, "Said so."), context);
  expect(failure.id).toBe(id);
  expect(failure.message).toContain(`Said so (${code}).`);
  expect(failure.facts).toEqual({
    code,
    action: "RunInstances",
    region: "us-west-2",
    requestId: "r-1",
  });
  expect(failureCode(failure)).toBe(code);
});

test("an image of the marketplace asks for a subscription at the address that the API names", () => {
  const said = (address: string) =>
    `In order to use this AWS Marketplace product you need to accept terms and subscribe. To do so please visit ${address}`;
  const address = "https://aws.amazon.com/marketplace/pp?sku=aw0evgkw8e5c1q413zgy5pjce";
  const failure = callFailure(answer("OptInRequired", said(address), 401), context);
  expect(failure.id).toBe("not-permitted");
  expect(failure.message).toStartWith("The account has no subscription to the image: ");
  expect(failure.hint).toBe(
    `Accept the image's terms in the cloud's marketplace (${address}), or choose another \`linuxDistribution\` or \`image\`.`,
  );
  const elsewhere = callFailure(
    answer("OptInRequired", said("https://example.com/marketplace/pp"), 401),
    context,
  );
  expect(elsewhere.hint).toBe(
    "Accept the image's terms in the cloud's marketplace, or choose another `linuxDistribution` or `image`.",
  );
});

test("refused credentials are named by their source", () => {
  const failure = callFailure(
    answer("AuthFailure", "AWS was not able to validate the provided access credentials"),
    context,
  );
  expect(failure.message).toMatchInlineSnapshot(
    `"The cloud refused the credentials from profile "dev" (CLOUD_PROFILE): AWS was not able to validate the provided access credentials (AuthFailure)."`,
  );
  expect(failure.hint).toMatchInlineSnapshot(
    `"Check that the key and the secret belong together, are active, and may be used in this region."`,
  );
});

test("an expired session is renewed by the profile's login, unless the clock is off", () => {
  expect(callFailure(answer("ExpiredToken", "x"), context).hint).toBe(
    "Renew the session with: aws sso login --profile dev",
  );
  expect(
    callFailure(answer("RequestExpired", "x"), { ...context, clockOffSeconds: -900 }).hint,
  ).toBe("This computer's clock is 900 s ahead of the API's: correct it.");
  expect(
    callFailure(answer("RequestExpired", "x"), { ...context, clockOffSeconds: 300 }).hint,
  ).toBe("This computer's clock is 300 s behind the API's: correct it.");
});

test("a missing permission names the action; the encoded part goes elsewhere", () => {
  const error = answer(
    "UnauthorizedOperation",
    "You are not authorized. Encoded authorization failure message: abcDEF-123",
    403,
  );
  const failure = callFailure(error, context);
  expect(failure.message).toMatchInlineSnapshot(
    `"The account may not call ec2:RunInstances with the credentials from profile "dev" (CLOUD_PROFILE): You are not authorized (UnauthorizedOperation)."`,
  );
  expect(encodedMessage(error)).toBe("abcDEF-123");
  expect(failure.hint).toEndWith("message is in the log, and shown with -v.");
});

test("without an encoded part, the hint doesn't promise one", () => {
  const error = answer("UnauthorizedOperation", "You are not authorized.", 403);
  expect(callFailure(error, context).hint).toBe("Allow ec2:RunInstances for this user or role.");
});

test("only a definite no means that nothing was done", () => {
  expect(wasRefused(callFailure(answer("InvalidParameterValue", "x", 400), context))).toBe(true);
  expect(wasRefused(callFailure(answer("InternalError", "x", 500), context))).toBe(false);
  expect(wasRefused(callFailure(new TypeError("socket closed"), context))).toBe(false);
});

test("an answer with a success's status is no refusal, whatever the SDK makes of it", () => {
  const unread = Object.assign(new SyntaxError("Unexpected token"), {
    $metadata: { httpStatusCode: 200 },
  });
  expect(wasRefused(callFailure(unread, context))).toBe(false);
});

test("credentials that can't be renewed are final", () => {
  const expired = Object.assign(new Error("The SSO session has expired."), {
    name: "CredentialsProviderError",
  });
  const failure = callFailure(expired, context);
  expect(failure).toMatchObject({ id: "no-credentials", transient: false });
  expect(failure.message).toBe(
    'The credentials from profile "dev" (CLOUD_PROFILE) cannot be renewed for ec2:RunInstances: The SSO session has expired.',
  );
  expect(failure.hint).toBe("Renew the session with: aws sso login --profile dev");
});

test("no answer at all is a passing failure", () => {
  const failure = callFailure(
    Object.assign(new TypeError("Unable to connect"), { code: "ECONNREFUSED" }),
    context,
  );
  expect(failure).toMatchObject({
    id: "cloud-failed",
    transient: true,
    facts: { code: "ECONNREFUSED" },
  });
  expect(failure.message).toBe(
    "The API in region us-west-2 did not answer ec2:RunInstances: Unable to connect.",
  );
  const elsewhere = callFailure(new TypeError("Is it on?"), {
    ...context,
    endpoint: "http://127.0.0.1:9",
  });
  expect(elsewhere.message).toBe(
    "The API in region us-west-2 did not answer ec2:RunInstances: Is it on. The request went to http://127.0.0.1:9.",
  );
});

test("a missing parameter is a missing network only where the API says so", () => {
  expect(callFailure(answer("MissingParameter", "No default VPC for this user"), context).id).toBe(
    "no-default-network",
  );
  expect(
    callFailure(answer("MissingParameter", "The request must contain ImageId"), context).id,
  ).toBe("cloud-failed");
});

test("a code that nobody knows is told with the request that support can look up", () => {
  expect(callFailure(answer("SomethingNew", "x"), context).hint).toBe(
    "The cloud's support can look up the request r-1.",
  );
});

test.each([
  ["RequestLimitExceeded", true, "The API kept throttling ec2:RunInstances"],
  ["ServiceUnavailable", true, "The API failed to carry out ec2:RunInstances"],
  ["InternalError", true, "The API failed to carry out ec2:RunInstances"],
  ["InvalidParameterValue", false, ""],
])("whether %s may pass: %p", (code, transient, message) => {
  const failure = callFailure(answer(code, "no", 503), context);
  expect(failure.transient).toBe(transient);
  expect(failure.message).toStartWith(message);
});

test("without an address in the API's message, the terms are accepted in the marketplace", () => {
  const failure = callFailure(
    answer("OptInRequired", "Subscribe in the marketplace first"),
    context,
  );
  expect(failure.hint).toBe(
    "Accept the image's terms in the cloud's marketplace, or choose another `linuxDistribution` or `image`.",
  );
});

test.each([
  [300, "This computer's clock is 300 s behind the API's: correct it."],
  [-300, "This computer's clock is 300 s ahead of the API's: correct it."],
  [299, "Renew the session with: aws sso login --profile dev"],
])("if the API's clock is %d s ahead, a rejected time says: %s", (clockOffSeconds, hint) => {
  const failure = callFailure(answer("RequestExpired", "x"), { ...context, clockOffSeconds });
  expect(failure.hint).toBe(hint);
  const isClock = Math.abs(clockOffSeconds) >= 300;
  expect(failure.message).toStartWith(
    isClock ? "The cloud rejected a request because of its" : "The session of the",
  );
});

test("variables with an expired session are set again", () => {
  const renewal = "Renew the session, and set the variables again.";
  expect(callFailure(answer("ExpiredToken", "x"), { ...context, renewal }).hint).toBe(renewal);
});

test("only a code of the table's own, or with its prefix, is explained", () => {
  expect(callFailure(answer("InvalidAMIID.Unavailable", "x"), context).id).toBe("image-not-found");
  expect(callFailure(answer("Unsupporte", "x"), context).id).toBe("cloud-failed");
  expect(callFailure(answer("AuthFailur", "x"), context).id).toBe("cloud-failed");
  const parameter = callFailure(answer("InvalidParameterValue", "x"), context);
  expect(parameter.message).toBe(
    "The cloud rejected a parameter of ec2:RunInstances: x (InvalidParameterValue).",
  );
});

test("a failure without a request id names none", () => {
  const unnumbered = Object.assign(new Error("x"), {
    name: "SomethingNew",
    $metadata: { httpStatusCode: 400 },
  });
  expect(callFailure(unnumbered, context).hint).toBe(
    "The cloud's support can look up the request.",
  );
});

const refusals: readonly (readonly [string, string, string, string?])[] = [
  ["SecurityGroupLimitExceeded", "capacity-lacking", "Delete security groups"],
  ["RulesPerSecurityGroupLimitExceeded", "capacity-lacking", "fewer ranges"],
  ["VolumeLimitExceeded", "capacity-lacking", "Delete volumes"],
  ["MaxIOPSLimitExceeded", "capacity-lacking", "Delete volumes"],
  ["NetworkInterfaceLimitExceeded", "capacity-lacking", "have the limit raised"],
  ["InsufficientVolumeCapacity", "capacity-lacking", "try again later"],
  ["TagPolicyViolation", "not-permitted", "`customTags`"],
  [
    "TagLimitExceeded",
    "cloud-failed",
    "`customTags`",
    "The maximum number of tags has been reached",
  ],
  [
    "InvalidParameterValue",
    "cloud-failed",
    "`customTags`",
    "The tag key 'Owner' has an invalid value",
  ],
  ["Blocked", "not-permitted", "support can unblock"],
  ["PendingVerification", "not-permitted", "Wait until"],
  ["OperationNotPermitted", "not-permitted", "protection"],
  ["Unsupported", "cloud-failed", "No other zone helps", "The instance type has no UEFI"],
  [
    "Unsupported",
    "capacity-lacking",
    "another `instanceType`",
    "not supported in your requested Availability Zone (b)",
  ],
  [
    "Unsupported",
    "capacity-lacking",
    "later",
    "The requested configuration is currently not supported. Please check",
  ],
  [
    "InvalidParameterValue",
    "cloud-failed",
    "another `image`",
    "The architecture 'arm64' of the specified instance type does not match the architecture 'x86_64' of the AMI",
  ],
];
test.each(
  refusals.map(([code, id, remedy, message = "Said so"]) => [code, id, remedy, message] as const),
)("%s is %s, with a remedy of its own: %s", (code, id, remedy, message) => {
  const failure = callFailure(answer(code, message), context);
  expect(failure).toMatchObject({ id, transient: false, hint: expect.stringContaining(remedy) });
});

test("throttling is no limit of the account", () => {
  const failure = callFailure(
    answer("RequestLimitExceeded", "Request limit exceeded.", 503),
    context,
  );
  expect(failure).toMatchObject({ id: "cloud-failed", transient: true });
});

const user = "User: arn:aws:iam::111122223333:user/me is not authorized to perform: ";
test.each([
  [
    `${user}ec2:RunInstances with an explicit deny in a service control policy`,
    /^The service control policy forbids ec2:RunInst/,
  ],
  [
    `${user}ec2:CreateTags with an explicit deny in an identity-based policy`,
    /^The identity-based policy forbids ec2:CreateTags/,
  ],
  [
    `${user}ec2:RunInstances with an explicit deny in a permissions boundary`,
    /^The permissions boundary forbids/,
  ],
  [
    `${user}ec2:RunInstances because no permissions boundary allows the action`,
    /in the permissions boundary too/,
  ],
  [
    `${user}ec2:RunInstances because no service control policy allows the action`,
    /in the service control policy too/,
  ],
  [
    `${user}ec2:CreateTags because no identity-based policy allows the action`,
    /^Allow ec2:CreateTags for this user or role/,
  ],
  ["You are not authorized.", /^Allow ec2:RunInstances for this user or role/],
])("the hint about a refusal is about what denies it: %s", (message, hint) => {
  expect(callFailure(answer("UnauthorizedOperation", message, 403), context).hint).toMatch(hint);
});

test("settings for which the cloud has no endpoint are no missing answer", () => {
  const error = Object.assign(
    new Error("FIPS is enabled but this partition does not support FIPS"),
    {
      name: "EndpointError",
    },
  );
  const failure = callFailure(error, context);
  expect(failure).toMatchObject({
    id: "machine-not-set-up",
    hint: expect.stringContaining("AWS_USE_FIPS_ENDPOINT"),
  });
  expect(failure.message).toContain("FIPS is enabled but this partition does not support FIPS");
});
