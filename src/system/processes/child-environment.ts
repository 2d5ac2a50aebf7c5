import type { Environment } from "../runtime.ts";

/** Variables that helper programs need: where to find programs, libraries and temporary files, and the user's name and language. */
const neededNames = /^(?:PATH|HOME|USER|LOGNAME|SHELL|TERM|TMPDIR|TZ|LANG|LANGUAGE|LC_[A-Z]+|(?:DY)?LD_LIBRARY_PATH)$/;

/** Variables that say which desktop, display, browser and proxies the user has. */
const desktopNames =
  /^(?:DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|DBUS_SESSION_BUS_ADDRESS|BROWSER|DESKTOP_SESSION|(?:XDG|KDE|GNOME|GTK|GDK|QT|MOZ)_\w+|WSL\w+|SSH_(?:CONNECTION|CLIENT|TTY)|(?:HTTPS?|ALL|NO)_PROXY)$/i;

/** Credentials of this program's clouds, and variables that take over an executable compiled by Bun. */
const secretNames = /^(?:CLOUD_|BUN_OPTIONS$|BUN_BE_BUN$)/;

/**
 * For a program that doesn't need the user's settings. An attacker who takes it over, such as a guest that escapes from its virtual machine, finds no
 * credentials in its environment.
 */
export function minimalEnvironment(environment: Environment): Environment {
  return filtered(environment, (name) => neededNames.test(name));
}

/** For a program with its own settings and credentials in the environment, such as a container engine and its helpers for registry logins. */
export function environmentWithoutSecrets(environment: Environment): Environment {
  return filtered(environment, (name) => !secretNames.test(name));
}

/** Whether the user's browser needs a variable. It never needs a credential, and its pages and extensions are other people's code. */
export const isForDesktop = (name: string): boolean => neededNames.test(name) || desktopNames.test(name);

/** For programs that every system has. */
export const systemEnvironment = { PATH: "/usr/bin:/bin:/usr/sbin:/sbin", LC_ALL: "C" } as const;

function filtered(environment: Environment, isKept: (name: string) => boolean): Environment {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => isKept(name)));
}
