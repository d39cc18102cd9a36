import { ENGLISH, type Speaker } from '../../lib/people/say.ts';
import type { TenantSettings } from '../../tenants/settings.ts';

/** Words of the answer to an access request (GDPR articles 15 and 22(3), contract 6.5). */

type Named = Extract<keyof TenantSettings, `notice.${string}`>;
type NoticeSettings = Pick<TenantSettings, Named | 'retention.days'>;

/** The controller and its contact (GDPR articles 13(1)(a) and 15(1)), whom a person needs to know. */
const NAMING = ['notice.controller', 'notice.contact'] as const;

const isEmpty = (text: string): boolean => text.trim() === '';

export function unnamedSettings(settings: Pick<NoticeSettings, (typeof NAMING)[number]>): readonly string[] {
  return NAMING.filter((name) => isEmpty(settings[name]));
}

/**
 * Makes the notice of GDPR article 15(1) and (2). Facts that only the controller knows come from the tenant's
 * settings.
 */
export function createNotice(
  settings: NoticeSettings,
  purposeTitles: readonly string[],
  /** Hosts of the webhooks that leave this machine. */
  recipients: readonly string[] = [],
  { say }: Speaker = ENGLISH,
) {
  const hosts = recipients.join(', ');
  const textOr = (text: string, fallback: string): string => (isEmpty(text) ? fallback : text);
  return {
    controller: textOr(settings['notice.controller'], say('notice.noController')),
    contact: textOr(settings['notice.contact'], say('notice.noContact')),
    purposes: textOr(settings['notice.purposes'], purposeTitles.join('; ')),
    categories:
      'Decisions about visits with the rules that fired; a scrambled number by which the device is recognised; when and how often it was seen; ' +
      'how many networks it came from in a day; the public key of a passkey, where one was made for this device; consent given, ' +
      'refused and withdrawn; objections. No raw signal values are stored.',
    recipients: textOr(
      settings['notice.recipients'],
      hosts === '' ? say('notice.noRecipients') : say('notice.webhooks', { hosts }),
    ),
    transfers: textOr(
      settings['notice.transfers'],
      hosts === '' ? say('notice.noTransfers') : say('notice.askTransfers', { hosts }),
    ),
    retention: say('notice.retention', { days: settings['retention.days'] }),
    source: 'The visitor’s browser, with consent, and the network that the request came from.',
    rights:
      'Access, correction, erasure, restriction while an objection is open, a copy to take along, review of any automated ' +
      'decision by a person, withdrawal of consent at any time, and a complaint to the authority.',
    authority: textOr(settings['notice.authority'], say('notice.noAuthority')),
    automatedDecisions:
      'A fixed table of rules weighs what the browser reports. Each decision lists the rules that fired, in plain words, and what ' +
      'would have changed it. It may lead the site to ask for a check or to refuse a request.',
  };
}

/** The name of a site, above a page: as its banner says it, otherwise the host of its pages. */
export function siteName(
  kid: string,
  { 'banner.siteName': name, origins: [origin] }: Pick<TenantSettings, 'banner.siteName' | 'origins'>,
): string {
  if (!isEmpty(name)) return name;
  return origin === undefined ? kid : new URL(origin).host;
}
