/** What the operator can do something about, in one sentence. */
export class BackupFailed extends Error {
  readonly conflict: boolean;

  constructor(message: string, conflict = false) {
    super(message);
    this.name = 'BackupFailed';
    this.conflict = conflict;
  }
}
