/**
 * Things that come and go all the time, and can be listed. Not a Set: V8 links each table that a Set outgrows, or empties by deletions, to its successor. Once one of them is in
 * the old generation, whatever was in a later one survives until a full collection; with a Set of the answers under way
 * that was every answer, and half of the collector's work.
 */
export function makeSlotList<Item>() {
  const places: (Item | null)[] = [];
  const free: number[] = [];
  return {
    /** @returns takes it off again, once */
    add(item: Item) {
      const place = free.pop() ?? places.length;
      places[place] = item;
      let on = true;
      return () => {
        if (!on) return;
        on = false;
        places[place] = null;
        free.push(place);
      };
    },
    list: () => places.filter((item) => item !== null),
  };
}
