import { readCredential, verifyCreated, verifyUsed } from '../src/attest/ceremony.ts';
import { create, get, makePasskey } from '../test/support/passkey.ts';
import { ecdhTask, makeTask, ratioRow, runRounds, type Task } from './classify.ts';
import type { Row } from './lib/report.ts';

/** What a passkey's answer costs to verify, beside the one ECDH that every bundle costs. In this process, no database. */

export interface PasskeyPlan {
  readonly rounds: number;
  readonly count: number;
}

const EXPECTED = { challenge: 'Y2hhbGxlbmdl', origin: 'https://shop.example', rpId: 'shop.example' };

const readOf = (credential: unknown) => {
  const read = readCredential(credential);
  if (!read) throw new Error('a good credential was not read');
  return read;
};

async function tasks(): Promise<readonly [created: Task, used: Task]> {
  const key = makePasskey(1);
  const [made, given] = [create(key, EXPECTED), get(key, EXPECTED)];
  const first = readOf(made);
  const stored = first.ceremony === 'create' && (await verifyCreated(first.credential, EXPECTED));
  if (!stored) throw new Error('a good passkey was refused');
  return [
    makeTask(async () => {
      const read = readOf(made);
      if (read.ceremony !== 'create' || !(await verifyCreated(read.credential, EXPECTED)))
        throw new Error('a good passkey was refused');
    }),
    makeTask(async () => {
      const read = readOf(given);
      if (read.ceremony !== 'get' || (await verifyUsed(read.credential, stored.publicKey, EXPECTED)) === null)
        throw new Error('a good signature was refused');
    }),
  ];
}

export async function benchPasskey(plan: PasskeyPlan): Promise<Row[]> {
  const [created, used] = await tasks();
  const ecdh = ecdhTask();
  await runRounds([created, ecdh, used], plan);
  return [
    ratioRow('passkey CPU, a new one', 'x computeSecret', null, [created, ecdh]),
    ratioRow('passkey CPU, a known one', 'x computeSecret', null, [used, ecdh]),
  ];
}
