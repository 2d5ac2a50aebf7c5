/** What Linux says of an open descriptor of this process. */
export const descriptorInfo = (descriptor: number): string => `/proc/self/fdinfo/${descriptor}`;

/**
 * Whether one of the descriptors 0 to 2 was closed when this program was started (`>&-`). Bun and
 * Node then open /dev/null in its place, so that no file gets its number, and close it in programs
 * that they start. No descriptor that was passed on is closed so. Elsewhere than on Linux there is
 * no such information.
 */
export const wasClosed = (info: string): boolean => /^flags:\s*\d*[2367]\d{6}$/m.test(info);

/** The error that a write to a closed descriptor would have. */
export const closedError = (): Error =>
  Object.assign(new Error("EBADF: bad file descriptor, write"), {
    code: "EBADF",
    syscall: "write",
  });
