/** The HTTP status of error codes that EC2 doesn't answer with 400. */
const statusByCode: Readonly<Record<string, number>> = {
  AuthFailure: 401,
  DryRunOperation: 412,
  InsufficientInstanceCapacity: 500,
  InternalError: 500,
  InvalidClientTokenId: 403,
  OptInRequired: 401,
  RequestLimitExceeded: 503,
  ServiceUnavailable: 503,
  SignatureDoesNotMatch: 403,
  Unavailable: 503,
  UnauthorizedOperation: 403,
};

/** An error as EC2 words it. The SDK turns `code` and `message` into the error's name and message. */
export class Ec2Error extends Error {
  readonly code: string;
  readonly status: number;

  constructor(code: string, message: string) {
    super(message);
    this.name = "Ec2Error";
    this.code = code;
    this.status = statusByCode[code] ?? 400;
  }
}
