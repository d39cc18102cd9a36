/**
 * The document's own properties. A named element of the page hides them (HTML, 3.1.5): with `<img name="body">` on the page that image is
 * `document.body`. The prototype has them as they are. This file is apart because loading it needs a document, which unit tests lack.
 */
export const doc: Document = new Proxy(document, {
  get(target, name) {
    const member: unknown = Reflect.get(Document.prototype, name, target);
    return typeof member === 'function'
      ? (...parameters: unknown[]): unknown => Reflect.apply(member, target, parameters)
      : member;
  },
});
