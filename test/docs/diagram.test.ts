import { expect, it } from 'vitest';
import { drawDiagram } from '../../bin/gen/diagram.ts';

const BOXES = 'box a 1,1 10x4 One\nbox b 21,1 10x4 Two & more\n';

it('draws boxes and an arrow between them, and names the picture', () => {
  const svg = drawDiagram(`title A <picture>\n${BOXES}arrow a.e -> b.w goes to\n`);
  expect(svg).toContain('<title>A &lt;picture&gt;</title>');
  expect(svg).toContain('d="M110 30L210 30"');
  expect(svg).toContain('Two &amp; more');
});

it.each([
  ['a text that does not fit', 'box a 1,1 5x4 A rather long text', /too small for/],
  ['an unknown line', 'circle 1,1', /unknown line/],
  ['an arrow to nowhere', `${BOXES}arrow a.e -> c.w`, /no box c\.w/],
  ['a wrong place', 'box a 1;1 10x4 One', /is no place/],
])('refuses %s', (_what, source, error) => {
  expect(() => drawDiagram(source)).toThrow(error);
});
