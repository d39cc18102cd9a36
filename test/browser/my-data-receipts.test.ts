import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { addApiKey } from '../support/api-key.ts';
import { KID } from '../support/constants.ts';
import { describeInChromium } from './support/chromium.ts';
import { useMyData } from './support/my-data.ts';

/** A person saves the receipts of their choices: as a page to print, and for a program. */

describeInChromium('browser/my-data receipts', () => {
  const at = useMyData();

  async function save(hook: string): Promise<string> {
    const [download] = await Promise.all([
      at.page.waitForEvent('download'),
      at.page.getByTestId(hook).click(),
    ]);
    expect(download.suggestedFilename()).toBe(hook);
    return readFileSync(await download.path(), 'utf8');
  }

  it('offers none before a choice, and the same choices in both forms after one', async () => {
    const publishable = await addApiKey(at.gpd, 'publishable');
    await at.open();
    await at.page.goto(`${at.base}/my-data?kid=${KID}&key=${publishable}`);
    await at.page.getByTestId('consent-accept').waitFor();
    expect(await at.page.getByTestId('receipts').count()).toBe(0);
    const recorded = at.page.waitForResponse((one) => one.url().endsWith('/v1/consent/grant'));
    await at.page.getByTestId('consent-accept').click();
    expect((await recorded).status()).toBe(201);
    await at.page.reload();
    await at.page.getByTestId('receipts').waitFor();
    const page = await save('receipts.html');
    expect(page).toContain('Receipt of your choices');
    const { '@graph': graph } = JSON.parse(await save('receipts.jsonld')) as {
      readonly '@graph': readonly { readonly event_state: string }[];
    };
    expect(graph.map((one) => one.event_state)).toEqual(['dpv:ConsentGiven']);
    expect(page.match(/data-testid="receipt"/g)).toHaveLength(1);
    expect(at.problems).toEqual([]);
  });
});
