import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { quote } from "../quote.ts";

/** Tells whether an `ssh` that has ended had logged in. Its exit status can't: 255 may be the remote command's own. */
export interface LoginMark extends AsyncDisposable {
  /** Arguments for ssh's command line. */
  readonly options: readonly string[];
  /** Variables that ssh must find in its environment: it passes LocalCommand to the user's shell, which may be any program. */
  readonly environment: Readonly<Record<string, string>>;
  /** Stays the same after disposal. */
  isSet(): boolean;
}

/**
 * ssh itself creates an empty file as soon as it has logged in, before the remote command begins. `path` must not exist and must be in a folder that
 * belongs to this user; disposing of the mark removes the file. https://man.openbsd.org/ssh_config#LocalCommand
 */
export function createLoginMark(path: string): LoginMark {
  const command = `: >${quote([path])}`.replaceAll("%", "%%");
  const state = { wasSet: false };
  const isSet = (): boolean => state.wasSet || existsSync(path);
  return {
    options: ["-o", "PermitLocalCommand=yes", "-o", `LocalCommand=${command}`],
    environment: { SHELL: "/bin/sh" },
    isSet,
    [Symbol.asyncDispose]: async () => {
      state.wasSet = isSet();
      await rm(path, { force: true });
    },
  };
}
