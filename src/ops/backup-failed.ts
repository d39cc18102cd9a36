/** What the operator can do something about, in one sentence. */
export class BackupFailed extends Error {
  readonly conflict: boolean;

  constructor(message: string, conflict = false) {
    super(message);
    this.name = 'BackupFailed';
    this.conflict = conflict;
  }
}

export const inUse = (path: string): BackupFailed =>
  new BackupFailed(`${path} is in use: stop the server and every command on it first`, true);
