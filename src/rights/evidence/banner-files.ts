import { bannerAnswer, type Embed } from '../../consent/banner-store.ts';
import { createMarkup } from '../../consent/markup-files.ts';
import type { Reader } from '../../db/engine.ts';
import type { Purpose } from '../../tenants/purposes.ts';
import type { TenantSettings } from '../../tenants/settings.ts';
import type { InForce } from './log-scan.ts';
import { readBannerTexts } from './openings-store.ts';
import type { NamedText } from './proofs-service.ts';

/** `banner/`: the texts of each version as the log hashes them, the banner itself, and a picture of it. */

/** The text that the log has the hash of (`allTexts` in consent/banner-store.ts). */
interface LoggedTexts {
  readonly kid: string;
  readonly banner: {
    readonly title: string;
    readonly body: string;
    readonly siteName: string;
    readonly policyUrl: string;
    readonly imprintUrl: string;
    readonly texts: TenantSettings['banner.texts'];
  };
  readonly purposes: readonly Omit<Purpose, 'banner'>[];
  readonly policyVersion: number;
}

const PLACES = { definition: null, materialSince: null, optOutUntil: null, askUntil: null };

function answerOf(texts: string, language: string) {
  const { kid, banner, purposes, policyVersion } = JSON.parse(texts) as LoggedTexts;
  const shown = {
    kid,
    purposes: purposes.map((purpose) => ({ ...purpose, banner: true, ...PLACES })),
    rules: { currentVersion: policyVersion, materialVersion: 0 },
    settings: {
      'banner.title': banner.title,
      'banner.body': banner.body,
      'banner.siteName': banner.siteName,
      'banner.policyUrl': banner.policyUrl,
      'banner.imprintUrl': banner.imprintUrl,
      'banner.texts': banner.texts,
      'banner.refusalDays': 0,
    },
  };
  return bannerAnswer(shown, { language, gpc: false });
}

const page = (language: string, markup: string): string =>
  `<!doctype html>\n<html lang="${language}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">` +
  `<title>The banner as it was shown</title></head><body>${markup}</body></html>\n`;

async function drawBanner(embed: Embed, texts: string, language: string) {
  const markup = createMarkup(embed);
  const config = { ...answerOf(texts, language), ...(await embed.wordsFor(language)) };
  return {
    html: page(language, await markup.render({ config, language, theme: 'light', nonce: null })),
    svg: await markup.draw({ config, language }),
  };
}

/** A version is named by its entry in the log. */
export async function* bannerParts(
  reader: Reader,
  kid: string,
  embed: Embed,
  { definitions, language }: { readonly definitions: readonly InForce[]; readonly language: string },
): AsyncGenerator<NamedText> {
  for (const { seq, type } of definitions) {
    if (type !== 'banner.published') continue;
    const texts = await readBannerTexts(reader, kid, seq);
    if (texts === null) continue;
    const { html, svg } = await drawBanner(embed, texts, language);
    yield { name: `banner/${seq}.json`, text: texts };
    yield { name: `banner/${seq}.html`, text: html };
    yield { name: `banner/${seq}.svg`, text: svg };
  }
}

/** @returns the words that the banner shows where the signal is honoured */
export const gpcMark = async (embed: Embed, language: string): Promise<string> =>
  (await embed.wordsIn(language))['gpc'] ?? '';
