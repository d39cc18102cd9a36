import { type Actions, REQUIRED } from '../define.ts';
import type { ExportOptions } from '../dsar-export.ts';

// What signs and packs is loaded when it is asked for, not with every command.
export const ACTIONS: Actions = {
  export: [
    async (options: ExportOptions) => (await import('../dsar-export.ts')).exportArchive(options),
    { tenant: REQUIRED, out: REQUIRED },
  ],
  certificate: async () => (await import('../dsar-export.ts')).printCertificate(),
};
