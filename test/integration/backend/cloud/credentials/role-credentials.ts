/** Credentials of a role: as a service on the machine sends them, and as the program reads them. */
export const keys = {
  AccessKeyId: "AKROLE",
  SecretAccessKey: "s",
  Token: "t",
  Expiration: "2099-01-01T00:00:00Z",
};
export const identity = {
  accessKeyId: "AKROLE",
  secretAccessKey: "s",
  sessionToken: "t",
  expiration: new Date(keys.Expiration),
};
