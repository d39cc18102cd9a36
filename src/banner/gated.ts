/** The elements of a page that wait for a choice. */

export const GATED_SCRIPT = 'script[type="text/plain"][data-purpose]';
export const GATED_MEDIA = ':is(iframe,img,video,audio)[data-purpose][data-src]';

export const purposesOf = ({ dataset }: HTMLElement): readonly string[] =>
  (dataset['purpose'] ?? '').split(/\s+/).filter(Boolean);
