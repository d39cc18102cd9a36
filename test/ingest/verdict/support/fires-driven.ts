import { chrome } from './browsers.ts';
import { type Shown, setFields } from './changes.ts';

/** A driver leaves these traces besides its marks; each rule is shown to fire on one. */

export const DRIVEN_FIRES: readonly Shown[] = [
  ['A8', 'a press without force', chrome, setFields('input', { forceless: true })],
  ['A9', 'granted and barred by a driver', chrome, setFields('tells', { granted: 2, barred: 4 })],
  ['T14', 'whole milliseconds under the name of Windows', chrome, setFields('input', { offGrid: false })],
  [
    'T15',
    'a tall screen that is said to lie',
    chrome,
    setFields('screen', {
      width: 390,
      height: 844,
      innerWidth: 390,
      outerWidth: 390,
      outerHeight: 800,
      innerHeight: 700,
      orientation: 'landscape-primary',
    }),
  ],
  [
    'T15',
    'a wide screen that is said to stand',
    chrome,
    setFields('screen', { orientation: 'portrait-primary' }),
  ],
  ['T15', "a phone's orientation under the name of a desktop", chrome, setFields('screen', { turns: true })],
  ['M12', 'a page that nobody used and that counts as used', chrome, setFields('tells', { activated: true })],
];
