import type { Command } from 'commander';
import { lastCosigned, readPolicy } from '../../log/cosign-service.ts';
import { readHead } from '../../log/entries-store.ts';
import { type CommandContext, command, example } from '../command-service.ts';
import { alignColumns, print } from '../io-service.ts';

export function define(witness: Command): void {
  witness
    .command('status')
    .description('show how far each witness of GPD_WITNESSES has cosigned each log')
    .addHelpText('after', example('gpd witness status'))
    .action(command(status));
}

/** Compares the size of each log with the size that each witness has cosigned. */
async function status({ config, services, open }: CommandContext): Promise<void> {
  const { database } = await open();
  const { witnesses, min } = readPolicy(config);
  const { tenants } = await services();
  const logs = await Promise.all(
    tenants.all().map(async ({ kid, signer }) => ({
      tenant: kid,
      origin: signer.name,
      size: (await readHead(database, kid))?.size ?? 0,
      witnesses: await lastCosigned(database, witnesses, kid),
    })),
  );
  print({ policy: min, logs }, () => {
    if (witnesses.length === 0) return ['GPD_WITNESSES is not set: nobody cosigns these logs'];
    const rows = logs.flatMap(({ tenant, size, witnesses: cosigners }) =>
      cosigners.map((one) => [
        tenant,
        String(size),
        one.name,
        one.size === null ? 'nothing yet' : String(one.size),
        one.cosignedAt ?? '',
      ]),
    );
    return [
      `witnessed  by ${min} of ${witnesses.length}`,
      '',
      ...alignColumns([['TENANT', 'ENTRIES', 'WITNESS', 'COSIGNED', 'AT'], ...rows]),
    ];
  });
}
