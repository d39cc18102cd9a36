import { createHash, createPublicKey } from 'node:crypto';
import { compactVerify, importJWK, type JWK } from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import { dumpDatabase } from '../../support/database.ts';
import { expectError } from '../../support/expect.ts';
import { verifyTlogProof } from '../../support/log-reader.ts';
import { started } from '../../support/started.ts';
import { PURPOSE, startApi } from './support/api.ts';
import { leafOf, readCheckpoint, readExport, treeHead } from './support/naive-log.ts';

interface Receipt {
  readonly receipt: {
    readonly piiPrincipalId: string;
    readonly consent: object;
    readonly proof: object;
  };
  readonly jws: string;
  readonly jwk: JWK;
}

const api = started(() => startApi({ purposes: [{ id: 'ads' }] }));

async function erase(principalId: string) {
  const token = await api.session(principalId);
  const reply = await api.post('/v1/principals/erase', {}, token);
  expect(reply.status).toBe(200);
  return { token, receipt: reply.json() as { scopes: { action: string }[]; incomplete: boolean } };
}

describe('a person erases what is theirs', () => {
  let entries: readonly { seq: number; hash: string }[];
  let stays: number;
  let token: string;
  let lastEntry: string;
  beforeAll(async () => {
    stays = (await api.write('grant', { principalId: 'stays' })).seq;
    entries = (await api.write('grant', { principalId: 'anna', purposes: [PURPOSE, 'ads'] })).entries;
    const erased = await erase('anna');
    lastEntry = readExport(await api.get('/v1/ledger/export')).at(-1)?.entry ?? '';
    token = erased.token;
    expect(erased.receipt).toMatchObject({
      tenant: 'acme',
      requestedBy: 'subject',
      scopes: expect.arrayContaining([{ scope: 'consent', action: 'erased', count: 2 }]) as object[],
      incomplete: false,
    });
    expect(JSON.stringify(erased.receipt)).not.toContain('anna');
  });

  it('is erased for every purpose, with the head of the log, and the session is over', async () => {
    const head = readExport(await api.get('/v1/ledger/export')).at(-1);
    for (const purpose of [PURPOSE, 'ads']) {
      expect(await api.check('anna', purpose)).toMatchObject({
        allowed: false,
        reason: 'erased',
        proof: { seq: head?.seq, hash: head?.hash },
      });
    }
    expect(JSON.parse(lastEntry)).toMatchObject({ type: 'subject.erased', purpose: null });
    expectError(await api.post('/v1/consent/state', { principalId: 'anna' }, token), 'unauthenticated');
  });

  it('has no history and no receipts any more, and others have theirs', async () => {
    expect(await api.events('anna')).toEqual([]);
    for (const { seq } of entries) expectError(await api.get(`/v1/consent/receipts/${seq}`), 'not-found');
    expect(await api.check('stays')).toMatchObject({ allowed: true });
    expect((await api.get(`/v1/consent/receipts/${stays}`)).status).toBe(200);
  });

  it('leaves the log as it was: the entries prove, and the root recomputes', async () => {
    const vkey = (await api.get('/v1/ledger/vkey')).text.trimEnd();
    for (const { seq, hash } of entries) {
      const result = verifyTlogProof((await api.get(`/v1/consent/proofs/${seq}`)).text, vkey);
      expect(result.ok && result.leafHash.toString('hex')).toBe(hash);
    }
    const leaves = readExport(await api.get('/v1/ledger/export')).map(({ entry }) => leafOf(entry));
    const { root, size } = readCheckpoint((await api.get('/v1/ledger/checkpoint')).text);
    expect(root).toBe(treeHead(leaves.slice(0, size)).toString('base64'));
  });

  it('stays erased through a denial, until a new grant', async () => {
    await api.write('grant', { principalId: 'tess', purposes: [PURPOSE, 'ads'] });
    await erase('tess');
    await api.write('deny', { principalId: 'tess' });
    expect(await api.check('tess')).toMatchObject({ reason: 'erased' });
    await api.write('grant', { principalId: 'tess' });
    expect(await api.check('tess')).toMatchObject({ allowed: true, reason: 'granted' });
    expect(await api.check('tess', 'ads')).toMatchObject({ reason: 'never-asked' });
    expect(await api.events('tess')).toMatchObject([{ type: 'consent.granted' }, { type: 'consent.denied' }]);
  });
});

describe('an erasure', () => {
  it('of an unknown person erases nothing and logs nothing', async () => {
    const before = (await api.get('/v1/ledger/export')).text;
    const { receipt } = await erase('never-seen');
    expect(new Set(receipt.scopes.map(({ action }) => action))).toEqual(new Set(['none']));
    expect((await api.get('/v1/ledger/export')).text).toBe(before);
  });

  it('twice logs once', async () => {
    await api.write('grant', { principalId: 'twice' });
    await erase('twice');
    const before = (await api.get('/v1/ledger/export')).text;
    expect((await erase('twice')).receipt.scopes).toContainEqual({
      scope: 'consent',
      action: 'none',
      count: 0,
    });
    expect((await api.get('/v1/ledger/export')).text).toBe(before);
    expect(await api.check('twice')).toMatchObject({ reason: 'erased' });
  });

  it.each([{ principalId: 'x' }, [], 'x'])('takes no other body than {}: %j', async (body) => {
    const session = await api.session('careful');
    expectError(await api.post('/v1/principals/erase', JSON.stringify(body), session), 'invalid-request');
  });

  it('leaves no idempotency answer by which the body could be guessed', async () => {
    const headers = { 'idempotency-key': 'guess' };
    const body = { principalId: 'guessable', purposes: [PURPOSE] };
    await api.post('/v1/consent/grant', body, undefined, headers);
    await erase('guessable');
    const { idempotency_keys: rows = [] } = await dumpDatabase(api.gpd.dataDir);
    const guess = createHash('sha256')
      .update(`["grant",{"principalId":"guessable","purposes":["${PURPOSE}"]}]`)
      .digest('base64url');
    expect(rows.join('\n')).not.toContain(guess);
  });
});

describe('a receipt', () => {
  const read = (seq: number, credential?: string) => api.get(`/v1/consent/receipts/${seq}`, credential);

  it('is signed by the key of the log, and says what was agreed to', async () => {
    const { seq, hash } = await api.write('grant', { principalId: 'ben', purposes: ['ads'] });
    const reply = await read(seq, await api.session('ben'));
    expect(reply.status).toBe(200);
    expect(reply.headers['cache-control']).toBe('no-store');
    const { receipt, jws, jwk } = reply.json() as Receipt;
    expect(receipt).toMatchObject({
      piiPrincipalId: 'ben',
      consent: { status: 'granted', purpose: { id: 'ads' }, source: 'backend', gpc: false },
      proof: { seq, hash },
    });
    const { payload, protectedHeader } = await compactVerify(jws, await importJWK(jwk, 'EdDSA'));
    expect(JSON.parse(Buffer.from(payload).toString())).toEqual(receipt);
    expect(protectedHeader.alg).toBe('EdDSA');
    expect(jwk).not.toHaveProperty('d');
    const vkey = (await api.get('/v1/ledger/vkey')).text.trimEnd();
    const raw = Buffer.from(vkey.split('+').slice(2).join('+'), 'base64').subarray(1);
    const spki = createPublicKey({ key: { ...jwk }, format: 'jwk' }).export({ format: 'der', type: 'spki' });
    expect(spki.subarray(-32).equals(raw)).toBe(true);
  });

  it('is for the person alone', async () => {
    const { seq } = await api.write('grant', { principalId: 'cleo' });
    expectError(await read(seq, await api.session('ben')), 'not-your-principal');
    const { receipt } = (await read(seq)).json() as Receipt;
    expect(receipt.piiPrincipalId).not.toBe('cleo');
  });

  it.each(['0', '1', '999999', '01', '-1', 'x'])('there is none of %s', async (seq) => {
    expectError(await api.get(`/v1/consent/receipts/${seq}`), 'not-found');
  });
});
