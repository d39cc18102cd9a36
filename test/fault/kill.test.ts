import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sized } from '../support/sized.ts';
import { createHouse, type House } from './support/house.ts';
import { judge, judgeFiles, judgeTables } from './support/judge.ts';
import { killUnderLoad } from './support/kill.ts';
import type { Book } from './support/load.ts';

const ROUNDS = sized('FAULT', 10, 200);

let house: House;
beforeAll(async () => {
  // At the end each bundle is sent once more: at full size the first ones are a quarter of an hour old.
  house = await createHouse({ settings: { GPD_MAX_CLOCK_SKEW: '7200' } });
});
afterAll(() => house.stop());

describe('kill -9 of the server at random moments under load', () => {
  it('loses nothing that was answered, and does nothing by half', { timeout: ROUNDS * 60_000 }, async () => {
    const books: Book[] = [];
    let gpd = await house.start();
    for (let round = 0; round < ROUNDS; round += 1) {
      const book = await killUnderLoad(house, gpd, round);
      books.push(book);
      expect(book.refusals.map(({ status, text }) => ({ status, text }))).toEqual([]);

      gpd = await house.start();
      await judgeTables(house);
      await judge(house, book);
      if (round % 4 === 0) await house.verify();
    }
    await gpd.kill9();
    // All of it once more: no later crash took what an earlier one had left.
    const last = await house.start();
    for (const book of books) await judge(house, book);
    await last.stop();
    for (const book of books) await judgeFiles(house, book);
    await house.verify();
  });
});
