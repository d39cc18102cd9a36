import type { TenantSettings } from '../../tenants/settings.ts';

/** Words of the answer to an access request (GDPR articles 15 and 22(3), contract 6.5). */

type Named = Extract<keyof TenantSettings, `notice.${string}`>;
type NoticeSettings = Pick<TenantSettings, Named | 'retention.days'>;

const UNSET = 'The operator of this site has not filled this in yet; ask the contact above.';

/** The controller and its contact (GDPR articles 13(1)(a) and 15(1)), whom a person needs to know. */
const NAMING = ['notice.controller', 'notice.contact'] as const;

const isEmpty = (text: string): boolean => text.trim() === '';

export function unnamedSettings(settings: Pick<NoticeSettings, (typeof NAMING)[number]>): readonly string[] {
  return NAMING.filter((name) => isEmpty(settings[name]));
}

/** A missing name is shown as missing: a placeholder would send a person to nobody. */
export const UNNAMED = {
  controller: 'This site has not named who is responsible.',
  contact: 'This site has not named a contact.',
} as const;

/**
 * Makes the notice of GDPR article 15(1) and (2). Facts that only the controller knows come from the tenant's
 * settings.
 */
export function createNotice(
  settings: NoticeSettings,
  purposeTitles: readonly string[],
  /** Hosts of the webhooks that leave this machine. */
  recipients: readonly string[] = [],
) {
  const hosts = recipients.join(', ');
  const textOr = (text: string, fallback = UNSET): string => (isEmpty(text) ? fallback : text);
  return {
    controller: textOr(settings['notice.controller'], UNNAMED.controller),
    contact: textOr(settings['notice.contact'], UNNAMED.contact),
    purposes: textOr(settings['notice.purposes'], purposeTitles.join('; ')),
    categories:
      'Decisions about visits with the rules that fired; a scrambled number by which the device is recognised; when and how often it was seen; ' +
      'how many networks it came from in a day; the public key of a passkey, where one was made for this device; consent given, ' +
      'refused and withdrawn; objections. No raw signal values are stored.',
    recipients: textOr(
      settings['notice.recipients'],
      hosts === ''
        ? 'The site has not said who else gets it.'
        : `This system sends notices of what happens to ${hosts}. The site has not said who else gets it.`,
    ),
    transfers: textOr(
      settings['notice.transfers'],
      hosts === ''
        ? 'None that this system makes.'
        : `Ask the contact above where ${hosts} processes the notices.`,
    ),
    retention: `Decisions are kept for ${settings['retention.days']} days, a scrambled form of your network address for one day, and for a week from how many networks this device came; the record of your consent until it is erased.`,
    source: 'The visitor’s browser, with consent, and the network that the request came from.',
    rights:
      'Access, correction, erasure, restriction while an objection is open, a copy to take along, review of any automated ' +
      'decision by a person, withdrawal of consent at any time, and a complaint to the authority.',
    authority: textOr(
      settings['notice.authority'],
      'The site has not named an authority. In the European Union, find yours at edpb.europa.eu.',
    ),
    automatedDecisions:
      'A fixed table of rules weighs what the browser reports. Each decision lists the rules that fired, in plain words, and what ' +
      'would have changed it. It may lead the site to ask for a check or to refuse a request.',
  };
}
