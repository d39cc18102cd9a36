import type { Mail } from '../egress/smtp.ts';

/** Keeps the mails of the demo in memory, for its page. No mail is sent. */

const MAX_MAILS = 100;

export type Mailbox = ReturnType<typeof createMailbox>;

export function createMailbox() {
  let mails: readonly Mail[] = [];
  return {
    send: async (mail: Mail): Promise<void> => {
      mails = [mail, ...mails].slice(0, MAX_MAILS);
    },
    /** The newest first. */
    list: (): readonly Mail[] => mails,
  };
}
