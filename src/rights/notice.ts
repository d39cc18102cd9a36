import type { RulePolicy } from '../ingest/verdict/classify.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { PERIODS } from './contests/period.ts';

/** Notices to people, as the tenant's settings fill them in. Pure. */

export interface NoticeTexts {
  readonly notices: readonly {
    readonly id: string;
    readonly title: string;
    readonly text: readonly string[];
  }[];
  readonly words: Readonly<Record<string, string>>;
}

export type NoticeTenant = Pick<Tenant, 'kid' | 'settings' | 'purposes'>;

/**
 * Fills the settings into the texts. A name in brackets marks a fact that no setting has and only the
 * operator knows.
 * @param url where people reach gpd
 */
export function fillNotices(
  { notices, words }: NoticeTexts,
  tenant: NoticeTenant,
  policy: RulePolicy,
  url: string,
) {
  const { kid, settings, purposes } = tenant;
  const profile = settings['rights.profile'];
  const { extendDays } = PERIODS[profile];
  const device = purposes.find(({ id }) => id === 'device-identification');
  const values: Readonly<Record<string, unknown>> = {
    ...words,
    ...settings,
    purposes: settings['notice.purposes'] || words['purposes'],
    consents: purposes.map(({ id, title, lawfulBasis }) => `${title} (${id}, ${lawfulBasis})`).join('; '),
    sites: settings.origins.join(', ') || '[origins]',
    days: `${settings['retention.days']}`,
    ttl: device && `${device.ttlDays}`,
    rules: `${policy.rules.length}`,
    policy: policy.version,
    kept: words[`kept.${settings['transparency.retain']}`],
    basis: words[`basis.${settings['consent.basis']}`],
    gpc: words[`gpc.${device?.gpc}`],
    due: words[`due.${profile}`],
    extension: extendDays === 0 ? '' : words['extension']?.replace('{n}', `${extendDays}`),
    myData: `${url}/my-data?kid=${kid}`,
    case: `${url}/case`,
  };
  const wordsOf = (name: string): string => {
    const value = values[name];
    return typeof value === 'string' && (value !== '' || !name.startsWith('notice.')) ? value : `[${name}]`;
  };
  const fill = (line: string): string =>
    line
      .replace(/\{([\w.]+)\}/g, (_, name: string) => wordsOf(name))
      .replace(/ {2,}/g, ' ')
      .trim();
  return notices.map(({ id, title, text }) => ({ id, title, text: text.map(fill) }));
}
