import { createSurface, type Surface } from './identify.ts';

// Known only while the script runs for the first time, so it is read now and not in a call.
// A named element of the page (`<img name="currentScript">`) hides the document's own property, and not the prototype's.
const currentScript: unknown = Reflect.get(Document.prototype, 'currentScript', document);
const scriptUrl = currentScript instanceof HTMLScriptElement && currentScript.src ? currentScript.src : null;

// The banner shares the name: each adds itself and leaves the other.
const page = window as { gpd?: { agent?: Surface } };
page.gpd = (Object.hasOwn(page, 'gpd') && page.gpd) || {};
page.gpd.agent = createSurface(scriptUrl);
