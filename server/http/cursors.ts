/**
 * Cursors of lists that TypeScript merges, in the form of sql/shared/60_cursors.sql: base64url of JSON, [version, order, key, ...]. Not signed: a
 * cursor only says where a page begins. Cursors of collections are signed, because their keys are values of columns that the caller may not read:
 * server/collections/cursors.ts.
 */
const version = 1

/** The most that the rows of one page may have, as internal.page_bytes(). */
export const pageBytes = 8_388_608
const longest = 200

/** `order` names the columns of the list's order, `occurred_at,id`; `keys` are their values in the last row of the page. */
export const writeCursor = (order: string, keys: readonly string[]): string =>
  Buffer.from(JSON.stringify([version, order, ...keys])).toString('base64url')

/** The keys of a cursor of this version and order, or null. The list validates the keys themselves. */
export const readCursor = (order: string, cursor: string): readonly string[] | null => {
  if (cursor.length > longest) return null
  const content = contentOf(cursor)
  if (!Array.isArray(content)) return null
  const [itsVersion, itsOrder, ...keys] = content as readonly unknown[]
  const isOurs = itsVersion === version && itsOrder === order && keys.every((key) => typeof key === 'string')
  return isOurs ? (keys as readonly string[]) : null
}

const contentOf = (cursor: string): unknown => {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString())
  } catch {
    return null
  }
}
