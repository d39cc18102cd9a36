import type { Command } from 'commander';
import { lastCosigned, readPolicy } from '../../log/cosign-service.ts';
import { readHead } from '../../log/entries-store.ts';
import { formatPolicy } from '../../log/policy.ts';
import { addCommand, type CommandContext } from '../command-service.ts';
import { print, tableLines } from '../io-service.ts';

export function define(witness: Command): void {
  addCommand(witness, 'status', status, {
    about: 'show how far each witness of GPD_WITNESSES has cosigned each log',
    example: 'gpd witness status',
  });
  addCommand(witness, 'policy [kid]', policy, {
    about: 'print the policy of a log for verifiers (C2SP tlog-policy)',
    example: 'gpd witness policy shop > policy.txt',
  });
}

/** Prints whom a verifier trusts: the key of the log, and the witnesses with their number. */
async function policy(
  { config, tenant: tenantOf, resolveKid }: CommandContext,
  kidArgument: string | undefined,
): Promise<void> {
  const kid = await resolveKid(kidArgument);
  const { signer } = await tenantOf(kid);
  const text = formatPolicy(signer.vkey, readPolicy(config));
  print({ kid, policy: text }, () => text.trimEnd().split('\n'));
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
    const rows = logs.flatMap(({ witnesses: cosigners, ...log }) => cosigners.map((one) => ({ log, one })));
    const table = tableLines(rows, {
      TENANT: ({ log }) => log.tenant,
      ENTRIES: ({ log }) => log.size,
      WITNESS: ({ one }) => one.name,
      COSIGNED: ({ one }) => one.size ?? 'nothing yet',
      AT: ({ one }) => one.cosignedAt ?? '',
    });
    return [`witnessed  by ${min} of ${witnesses.length}`, '', ...table];
  });
}
