/** The ids that files of this program get. Unlike the system's `userInfo`, these need no entry in the password file. */
export const ownUserId = (): number | undefined => process.geteuid?.();
export const ownGroupId = (): number | undefined => process.getegid?.();
