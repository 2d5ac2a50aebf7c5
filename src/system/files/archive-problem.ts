import { OwnError } from "../../errors.ts";

/** Why an archive is rejected, as the end of a sentence: "the archive is damaged". The caller adds where the archive comes from. */
export class ArchiveProblem extends OwnError {
  override readonly name: string = "ArchiveProblem";
}

/** The archive ended too early. Its writer may have failed, and may have said why. */
export class IncompleteArchive extends ArchiveProblem {
  override readonly name = "IncompleteArchive";

  constructor() {
    super("the archive is incomplete");
  }
}

/** What an archive may hold at most, so that it fills neither memory nor disk. */
export interface ArchiveLimits {
  readonly entries: number;
  readonly totalBytes: number;
}
