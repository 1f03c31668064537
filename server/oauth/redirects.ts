/** Where a sign-in by redirect may return to: addresses of the project, compared whole, or by a path under which all are allowed. */

/** Schemes that no app receives a redirect at: a browser runs, opens or downloads what is behind them. */
const refusedSchemes = new Set(
  ['about', 'blob', 'data', 'file', 'filesystem', 'ftp', 'intent', 'javascript', 'mailto', 'sms', 'tel', 'vbscript']
    .concat(['view-source', 'ws', 'wss'])
    .map((scheme) => `${scheme}:`),
)
const loopback = /^(localhost|127\.0\.0\.1|\[::1\])$/

/** Printable ASCII without a backslash, which browsers read as a slash. */
const plain = /^[!-[\]-~]{1,2000}$/

type Read = { readonly url: URL; readonly problem?: undefined } | { readonly problem: string }

const read = (text: string): Read => {
  const url = plain.test(text) ? URL.parse(text) : null
  if (!url) return { problem: 'must be an address in ASCII, without spaces' }
  if (url.username || url.password || text.includes('#')) return { problem: 'must have neither a user nor a fragment' }
  if (refusedSchemes.has(url.protocol)) return { problem: `must not begin with ${url.protocol}` }
  if (url.protocol === 'http:' && !loopback.test(url.hostname))
    return { problem: 'must begin with https://, or with the scheme of an app; http:// is for localhost' }
  return { url }
}

/** An entry of the list in its stored form, or what is wrong with it. */
export const entryOf = (text: string): { readonly entry: string } | { readonly problem: string } => {
  const isPath = text.endsWith('/*')
  const base = isPath ? text.slice(0, -1) : text
  if (base.includes('*') || (isPath && (!/^[a-z][a-z0-9+.-]*:\/\/[^/?]*\//i.test(base) || base.includes('?'))))
    return { problem: 'may have a * only at its end, after the / of a path' }
  const found = read(base)
  if (found.problem !== undefined) return found
  const entry = isPath ? `${found.url.href}*` : found.url.href
  return entry.length > 500 ? { problem: 'must have at most 500 characters' } : { entry }
}

const matches = (entry: string, url: URL): boolean => {
  if (!entry.endsWith('/*')) return entry === url.href
  const prefix = entry.slice(0, -1)
  const path = url.href.split('?')[0] ?? ''
  // what some server takes for a slash or for dots, after it has decoded the path, once or again, or taken parameters off its parts
  return path.startsWith(prefix) && !/%(25)*(2f|5c|2e)|\/\.\.?([/;]|%(25)*3b|$)/i.test(path.slice(prefix.length - 1))
}

/** The address to return to as it is sent to a browser: what was asked for, else the first of the list; null when it is not allowed. */
export const redirectTo = (entries: readonly string[], asked: string | undefined): string | null => {
  const wanted = asked === undefined || asked === '' ? entries.find((entry) => !entry.endsWith('/*')) : asked
  if (wanted === undefined) return null
  const { url } = read(wanted) as { url?: URL }
  return url && entries.some((entry) => matches(entry, url)) ? url.href : null
}

/** The address with what the app reads there. */
export const withAnswer = (address: string, answer: Readonly<Record<string, string>>): string => {
  const url = new URL(address)
  for (const [name, value] of Object.entries(answer)) url.searchParams.set(name, value)
  return url.href
}
