import type { Variant } from "../model/cluster-record.ts";
import type { Configuration } from "../platform/configuration/configuration.ts";
import { superuserOf } from "../platform/configuration/configuration.ts";
import type { Checked } from "../system/checked.ts";
import { problem } from "../system/checked.ts";

export interface SuperuserLogin {
  readonly username: string;
  /** Secret. */
  readonly password: string;
}

/**
 * Returns the login of the superuser that the extra configuration creates; undefined for the open source variant, which has none. It is a problem if
 * the configuration holds a password hash and the password was not given.
 */
export function superuserLogin(
  variant: Variant,
  extraConfiguration: Configuration,
  given: string | undefined,
): Checked<SuperuserLogin | undefined> {
  if (variant === "oss") return { value: undefined };
  const superuser = superuserOf(extraConfiguration);
  const password = given ?? superuser.password;
  if (password !== undefined) return { value: { username: superuser.username, password } };
  return problem(
    "`wait`: `extraConfig` contains only the hash of the superuser's password; pass the password with `superuserPassword`",
  );
}
