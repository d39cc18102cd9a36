import { beforeAll, describe, expect, it } from 'vitest';
import {
  findByCredential,
  findInvited,
  inviteStaff,
  joinStaff,
  listStaff,
  raiseCounter,
  removeStaff,
  type StaffMember,
} from '../../../src/console/staff-store.ts';
import { addTenant, type MakeDatabase } from '../../db/contract/database.ts';
import { started } from '../../support/started.ts';

const BY = { role: 'operator', ref: 'op', at: 1 } as const;
const memberOf = (kid: string, id: string, name: string): StaffMember => ({
  kid,
  id,
  name,
  role: 'reviewer',
  inviteHash: `hash of ${id}`,
  inviteUntil: 10,
  credential: null,
  publicKey: null,
  counter: 0,
  createdAt: 1,
  joinedAt: null,
  removedAt: null,
});

export function staffContract(make: MakeDatabase): void {
  describe('staff with passkeys', () => {
    const db = started(make);
    beforeAll(async () => {
      await addTenant(db.database, 'one');
      await addTenant(db.database, 'two');
    });

    const join = (member: StaffMember, credential: string) =>
      db.database.transaction((tx) =>
        joinStaff(tx, member, { credential, publicKey: 'k', counter: 3 }, { ref: 'r', at: 2 }),
      );

    it('an invitation is used once, and a newer one replaces it', async () => {
      const { database } = db;
      const first = memberOf('one', 'a', 'Rosa');
      const second = memberOf('one', 'b', 'Rosa');
      expect(await inviteStaff(database, first, BY)).toBe(true);
      expect(await inviteStaff(database, second, BY)).toBe(true);
      expect(await inviteStaff(database, memberOf('two', 'c', 'Rosa'), BY)).toBe(false);
      expect(await inviteStaff(database, memberOf('gone', 'd', 'Nils'), BY)).toBe(false);
      expect(await findInvited(database, 'hash of a')).toBeNull();
      expect(await Promise.all([join(second, 'x'), join(second, 'y')])).toEqual(
        expect.arrayContaining([true, false]),
      );
      expect(await findInvited(database, 'hash of b')).toBeNull();
      expect(await inviteStaff(database, memberOf('one', 'e', 'Rosa'), BY)).toBe(false);
    });

    it('a counter is raised from what was read, and somebody who was removed has none', async () => {
      const { database } = db;
      const [member] = await listStaff(database);
      if (!member) throw new Error('nobody joined');
      const raise = (counter: number) => database.transaction((tx) => raiseCounter(tx, member, counter));
      expect(await raise(4)).toBe(true);
      expect(await raise(5)).toBe(false);
      expect(await removeStaff(database, member, 'r', BY)).toBe(true);
      expect(await removeStaff(database, member, 'r', BY)).toBe(false);
      expect(await raise(4)).toBe(false);
      expect(await findByCredential(database, String(member.credential))).toBeNull();
      // The name can be used again.
      expect(await inviteStaff(database, memberOf('two', 'f', 'Rosa'), BY)).toBe(true);
    });
  });
}
