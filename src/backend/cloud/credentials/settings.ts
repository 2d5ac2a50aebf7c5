import { X509Certificate } from "node:crypto";
import type { EC2ClientConfig } from "@aws-sdk/client-ec2";
import { ClusterError, quoted } from "../../../errors.ts";
import { outside } from "../../../outside-text.ts";
import { readOwnText, unreadableReason } from "../../../system/files/read-text.ts";
import { maskUrl } from "../../../system/mask-url.ts";
import type { Environment } from "../../../system/runtime.ts";
import { variable } from "../../../system/variable.ts";
import type { Profile } from "./profile.ts";

/** The services that requests may go to, by the names that variables and files have for them. */
type Service = "EC2" | "STS" | "SSO" | "SIGNIN";

/** How requests are sent, as variables and the profile say. */
export interface CloudSettings {
  /** The address for requests to a service, if it isn't the cloud provider's own. Throws `machine-not-set-up`. */
  readonly endpointOf: (service: Service) => Endpoint | undefined;
  /** Certificates of the authorities to trust, if not the usual ones. */
  readonly authorities: string | undefined;
  /** For every client, so that none of them reads another profile. */
  readonly client: Pick<EC2ClientConfig, "profile" | "useFipsEndpoint" | "useDualstackEndpoint"> & {
    readonly ignoreConfiguredEndpointUrls: true;
  };
}

export interface Endpoint {
  readonly url: string;
  /** The URL and where it is set, as people may see it. */
  readonly shown: string;
}

/** A value, and where it is set: `AWS_CA_BUNDLE` or `ca_bundle of profile "dev" (CLOUD_PROFILE)`. */
interface Setting {
  readonly value: string;
  readonly origin: string;
}

/**
 * Read here and not by the SDK, which would read this process's variables, and AWS_PROFILE. Throws
 * `machine-not-set-up`.
 */
export async function readSettings(
  environment: Environment,
  profile: Profile,
): Promise<CloudSettings> {
  const find = (name: string, setting: string): Setting | undefined => {
    const value = variable(environment, name);
    return value === undefined
      ? inSection(profile, profile.settings, setting)
      : { value, origin: name };
  };
  const flag = (name: string, setting: string): Setting | undefined =>
    readFlag(find(name, setting));
  const fips = flag("AWS_USE_FIPS_ENDPOINT", "use_fips_endpoint");
  const dualStack = flag("AWS_USE_DUALSTACK_ENDPOINT", "use_dualstack_endpoint");
  const ignored = flag("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "ignore_configured_endpoint_urls");
  const endpointOf = (service: Service): Endpoint | undefined => {
    if (ignored !== undefined) return undefined;
    const found = findEndpoint(environment, profile, service);
    const other = fips ?? dualStack;
    if (found !== undefined && other !== undefined) throw twoEndpoints(found, other);
    return found && readEndpoint(found);
  };
  const bundle = find("AWS_CA_BUNDLE", "ca_bundle");
  return {
    endpointOf,
    authorities: bundle && (await readAuthorities(bundle)),
    client: {
      profile: profile.name,
      useFipsEndpoint: fips !== undefined,
      useDualstackEndpoint: dualStack !== undefined,
      ignoreConfiguredEndpointUrls: true,
    },
  };
}

function inSection(
  profile: Profile,
  section: Profile["settings"],
  name: string,
): Setting | undefined {
  const value = section[name];
  return value === undefined
    ? undefined
    : { value, origin: `${name.replace(".", " ")} of ${profile.shown}` };
}

/** Undefined if it isn't set, or is `false`. */
function readFlag(setting: Setting | undefined): Setting | undefined {
  const value = setting?.value.toLowerCase();
  if (setting === undefined || value === "false") return undefined;
  if (value === "true") return setting;
  throw new ClusterError(
    "machine-not-set-up",
    `${setting.origin} is neither true nor false: ${quoted(setting.value)}.`,
    {
      hint: "Set it to true or false, or unset it.",
    },
  );
}

/** https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html */
function findEndpoint(
  environment: Environment,
  profile: Profile,
  service: Service,
): Setting | undefined {
  for (const origin of [`AWS_ENDPOINT_URL_${service}`, "AWS_ENDPOINT_URL"]) {
    const value = variable(environment, origin);
    if (value !== undefined) return { value, origin };
  }
  const services = profile.settings["services"];
  if (services === undefined) return inSection(profile, profile.settings, "endpoint_url");
  const section = profile.sections[`services.${services}`];
  if (section === undefined) throw noServices(profile, services);
  return (
    inSection(profile, section, `${service.toLowerCase()}.endpoint_url`) ??
    inSection(profile, profile.settings, "endpoint_url")
  );
}

const noServices = ({ shown, files }: Profile, services: string): ClusterError =>
  new ClusterError(
    "machine-not-set-up",
    `${shown} needs a section [services ${services}], which doesn't exist.`,
    {
      hint: `Add it to ${files.configFilepath}, or remove "services" from the profile.`,
    },
  );

function readEndpoint({ value, origin }: Setting): Endpoint {
  if (/^https?:\/\//i.test(value) && URL.canParse(value))
    return { url: value, shown: `${outside(maskUrl(value))}, from ${origin}` };
  throw new ClusterError(
    "machine-not-set-up",
    `${origin} is not the URL of an API: ${quoted(value)}.`,
    {
      hint: `Unset it, or set it to a URL such as https://ec2.us-west-2.amazonaws.com.`,
    },
  );
}

const twoEndpoints = (endpoint: Setting, other: Setting): ClusterError =>
  new ClusterError(
    "machine-not-set-up",
    `Requests cannot go to two endpoints: ${endpoint.origin} names one, and ${other.origin} asks for another kind.`,
    { hint: `Unset one of the two. The endpoint's URL can itself be one of that kind.` },
  );

const certificate = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/** The SDK doesn't read them by itself. A file without any would make every certificate look bad. */
async function readAuthorities({ value: path, origin }: Setting): Promise<string> {
  const refuse = (problem: string, cause: unknown): ClusterError =>
    new ClusterError(
      "machine-not-set-up",
      `Cannot use ${path}, the file that ${origin} names: ${problem}.`,
      {
        hint: "Name a file of certificates in PEM format, or unset it.",
        cause,
      },
    );
  const text = await readOwnText(path).catch((error: unknown) => {
    throw refuse(unreadableReason(error), error);
  });
  if (!(text.match(certificate) ?? []).some(isReadable))
    throw refuse("it contains no certificate in PEM format", undefined);
  return text;
}

function isReadable(block: string): boolean {
  try {
    return new X509Certificate(block).subject !== undefined;
  } catch {
    return false;
  }
}
