import { quoted } from "../../../errors.ts";
import { type Profile, namesCredentials, sourceProfiles, sourceSettings } from "./profile.ts";

interface ProfileFault {
  /** Completes "Cannot get credentials from profile …: …". */
  readonly problem: string;
  readonly remedy?: string;
}

type Section = Profile["settings"];

/**
 * What is wrong with a profile, or with one that it takes its credentials from, as far as the files
 * show it. The SDK would only say that it found no credentials, or would use others than the
 * cloud's own tools: those of a profile whose role it ignores, for example.
 */
export function profileFault(profile: Profile): ProfileFault | undefined {
  for (const name of sourceProfiles(profile)) {
    const section = profile.sections[name];
    const fault =
      section === undefined
        ? (otherHeader(profile, name) ?? missingProfile(profile, name))
        : sectionFault(profile, name, section);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** The section may be there, but in a form that isn't read. */
function otherHeader(
  { headers, sections, files }: Profile,
  name: string,
): ProfileFault | undefined {
  // The SDK's name for `[profile dev]` where profiles have no such word before their names.
  if (sections[`profile.${name}`] !== undefined && isReadable(name))
    return {
      problem: `the section [profile ${name}] in ${files.filepath} is not read as profile "${name}"`,
      remedy: `Write it as [${name}] there.`,
    };
  const found = headers.find((header) => nameIn(header) === name);
  if (found === undefined) return undefined;
  if (found === `profile ${name}` && isReadable(name))
    return {
      problem: `profile "${name}" has no settings in ${files.configFilepath}`,
      remedy: "Put credentials into it.",
    };
  const remedy = isReadable(name)
    ? `Write it as [profile ${name}].`
    : "Give it a name of letters, digits and the characters _-@+.%:/ only.";
  return {
    problem: `the section [${quoted(found).slice(1, -1)}] in ${files.configFilepath} is not read as profile ${quoted(name)}`,
    remedy,
  };
}

function missingProfile(profile: Profile, name: string): ProfileFault {
  const names = profileNames(profile).join(", ") || "none";
  const unread = profile.unread.map(({ file, reason }) => `${file}: ${reason}`);
  return {
    problem: [`there is no profile "${name}"`, ...unread].join("; "),
    remedy: `There are these profiles: ${names}.`,
  };
}

/** `dev` for `dev`, `profile  dev` and `profile "dev"`. */
const nameIn = (header: string): string =>
  header
    .trim()
    .replace(/^profile\s+/, "")
    .replace(/^(["'])(.*)\1$/, "$2");

const isReadable = (name: string): boolean => /^[\w@+.%:/-]+$/.test(name);

function sectionFault(profile: Profile, name: string, section: Section): ProfileFault | undefined {
  const has = (setting: string): boolean => section[setting] !== undefined;
  const shown = `profile "${name}"`;
  const session = section["sso_session"];
  if (session !== undefined && profile.sections[`sso-session.${session}`] === undefined)
    return {
      problem: `${shown} needs a section [sso-session ${session}] in ${profile.files.configFilepath}`,
    };
  const capital = Object.keys(section).find(
    (setting) =>
      section[setting.toLowerCase()] === undefined &&
      namesCredentials({ settings: { [setting]: "" } }),
  );
  if (capital !== undefined)
    return {
      problem: `${shown} has the setting ${capital}, which is not read`,
      remedy: `Write it in small letters: ${capital.toLowerCase()}.`,
    };
  const ownSource = ["aws_access_key_id", "web_identity_token_file", "credential_process"];
  const sso = missingSso(section, profile.sections[`sso-session.${session}`] ?? {});
  if (sso.length > 0 && ![...ownSource, "role_arn"].some(has))
    return {
      problem: `${shown} signs on with SSO, but lacks ${sso.join(" and ")}`,
      remedy: `Add what is missing, or run: aws configure sso --profile ${name}`,
    };
  if (has("role_arn") && has("source_profile") && has("credential_source"))
    return {
      problem: `${shown} has both source_profile and credential_source`,
      remedy: "Remove one of the two.",
    };
  const missing = missingPart(has);
  if (missing === undefined) return undefined;
  return { problem: `${shown} has ${missing}`, remedy: "Add what is missing, or remove the rest." };
}

/** What a profile that signs on with SSO lacks. The session that it names may have the first two. */
function missingSso(section: Section, session: Section): readonly string[] {
  const ofSession = ["sso_start_url", "sso_region"];
  const all = [...ofSession, "sso_account_id", "sso_role_name"];
  if (![...all, "sso_session"].some((setting) => section[setting] !== undefined)) return [];
  return all.filter(
    (setting) =>
      section[setting] === undefined &&
      !(ofSession.includes(setting) && session[setting] !== undefined),
  );
}

function missingPart(has: (setting: string) => boolean): string | undefined {
  const [role, token] = ["role_arn", "web_identity_token_file"];
  if (has(token) && !has(role)) return `${token} without ${role}`;
  if (has(role) && !["source_profile", "credential_source", token].some(has))
    return `${role} without source_profile or credential_source`;
  const keys = ["aws_access_key_id", "aws_secret_access_key"];
  const [given, absent] = [keys.filter(has), keys.filter((key) => !has(key))];
  const isWhole = given.length !== 1 || ["credential_process", "sso_session", role].some(has);
  return isWhole ? undefined : `${given.join()} without ${absent.join()}`;
}

/**
 * What helps when a profile gives no credentials, or none any more. It depends on the profile that
 * the others take theirs from.
 */
export function profileHint(profile: Profile): string {
  const { remedy } = profileFault(profile) ?? {};
  if (remedy !== undefined) return remedy;
  const base = sourceProfiles(profile).at(-1) ?? profile.name;
  const has = (setting: string): boolean =>
    sourceSettings(profile).some((each) => each[setting] !== undefined);
  if (has("mfa_serial"))
    return `This program cannot ask for the code of mfa_serial. Pass keys that another tool has got with it: unset ${profile.variable ?? "CLOUD_PROFILE"}, and run: eval "$(aws configure export-credentials --profile ${profile.name} --format env)"`;
  if (has("login_session")) return `Renew the session with: aws login --profile ${base}`;
  if (has("sso_session") || has("sso_start_url"))
    return `Renew the SSO session with: aws sso login --profile ${base}`;
  if (has("credential_process"))
    return `Run the credential_process of profile "${base}" by hand to see what it needs.`;
  if (has("web_identity_token_file"))
    return `Check the token in the file that web_identity_token_file names.`;
  const { source_profile, credential_source } = profile.sections[base] ?? {};
  if (source_profile !== undefined)
    return `Change source_profile of profile "${base}": it must lead to a profile that has credentials of its own.`;
  if (credential_source !== undefined)
    return `credential_source of profile "${base}" must be Environment, EcsContainer or Ec2InstanceMetadata, and exist where this program runs.`;
  return `Put valid keys into profile "${base}".`;
}

/** Other sections have a kind before their name. */
const profileNames = ({ sections }: Profile): readonly string[] =>
  Object.keys(sections).filter((name) => !/^(?:sso-session|services)\./.test(name));
