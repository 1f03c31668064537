import type { Secrets } from '#server/secrets.ts'

type Surroundings = { readonly secrets: Secrets; readonly publicUrl: string; readonly now: () => Date }

/**
 * What a picture or a link of a tracked message says: which message, of a link where it leads, and when the message was sent, in seconds.
 */
export type Tracked = {
  readonly project: string
  readonly message: string
  readonly url: string | null
  readonly sentAt: number
}

/** As long as messages are kept: internal.purge__email. */
const lifetimeSeconds = 90 * 86_400
const secondsOf = (now: Date) => Math.floor(now.getTime() / 1000)

/** Whether the time of a link is over. */
export const isOver = ({ sentAt }: Tracked, now: Date): boolean => secondsOf(now) >= sentAt + lifetimeSeconds

const purpose = 'mail tracking'

/** Encrypted and authenticated: the address of a redirect is one that stood in a message of the project, so nobody can make one up. */
const trackedUrl = (
  { secrets, publicUrl, now }: Surroundings,
  { project, message, url }: Omit<Tracked, 'sentAt'>,
): string => `${publicUrl}/e/${secrets.encrypt(purpose, JSON.stringify([project, message, url, secondsOf(now())]))}`

/** Reads a token; null for one that was not made here. */
export const readTracked = (secrets: Secrets, token: string): Tracked | null => {
  if (!/^v2\.[0-9a-f]{8}(\.[\w-]+){3}$/.test(token)) return null
  try {
    const [project, message, url, sentAt] = JSON.parse(secrets.decrypt(purpose, token)) as [
      project?: string,
      message?: string,
      url?: string | null,
      sentAt?: number,
    ]
    return project && message && sentAt ? { project, message, url: url ?? null, sentAt } : null
  } catch {
    return null
  }
}

const named: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }
/** The text of an attribute: its character references read. Others than these stay as they are. */
const unescaped = (text: string): string =>
  text.replace(
    /&(?:#x([0-9a-f]{1,6})|#([0-9]{1,7})|([a-z]+));/gi,
    (whole, hex?: string, decimal?: string, name?: string) => {
      if (name) return named[name.toLowerCase()] ?? whole
      const code = hex ? Number.parseInt(hex, 16) : Number(decimal)
      return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole
    },
  )

/** A token has to fit into a path that this server reads. */
const longestUrl = 4000

/**
 * Where a link to a web page leads, as a header of a redirect takes it: percent-encoded, the host in Punycode. Null for what is not followed: mailto,
 * anchors, the mark of unsubscription.
 */
const followedUrl = (url: string): string | null => {
  const href = /^https?:\/\/[^\s{}]+$/i.test(url) ? URL.parse(url)?.href : undefined
  return href !== undefined && href.length <= longestUrl ? href : null
}

const attribute = /(\s)([^\s"'>/=]+)(\s*=\s*)("[^"]*"|'[^']*')/g

/** The end of a tag: its `>`, which is not within quotes; -1 where there is none. */
const endOfTag = (html: string, from: number): number => {
  for (let at = from; at < html.length; at += 1) {
    const character = html[at]
    if (character === '>') return at
    if (character === '"' || character === "'") {
      at = html.indexOf(character, at + 1)
      if (at < 0) return -1
    }
  }
  return -1
}

/**
 * HTML with the text of each tag replaced, comments left out. One pass: no content, however broken, makes it read anything twice. What follows a tag
 * that does not end stays as it is.
 */
const mapTags = (html: string, map: (tag: string) => string): string => {
  const start = /<(?:!--|\/?[a-z])/gi
  let made = ''
  let done = 0
  for (let found = start.exec(html); found; found = start.exec(html)) {
    const isComment = found[0] === '<!--'
    const end = isComment ? html.indexOf('-->', found.index) : endOfTag(html, found.index)
    if (end < 0) break
    if (!isComment) {
      made += html.slice(done, found.index) + map(html.slice(found.index, end))
      done = end
    }
    start.lastIndex = end
  }
  return made + html.slice(done)
}

/** A link takes some hundred bytes and a turn of the cipher: a message of nothing but links would grow to many times its size. */
const mostLinks = 200

/** HTML whose first links report that they were followed, and which ends in a picture that reports opening. */
export const withTracking = (surroundings: Surroundings, project: string, message: string, html: string): string => {
  let links = 0
  const linked = mapTags(html, (tag) => {
    if (!/^<a\s/i.test(tag) || links >= mostLinks) return tag
    return tag.replace(attribute, (whole, space: string, name: string, equals: string, quoted: string) => {
      const url = name.toLowerCase() === 'href' ? followedUrl(unescaped(quoted.slice(1, -1)).trim()) : null
      if (url !== null) links += 1
      return url !== null ? `${space}${name}${equals}"${trackedUrl(surroundings, { project, message, url })}"` : whole
    })
  })
  const picture = `<img src="${trackedUrl(surroundings, { project, message, url: null })}" width="1" height="1" alt="" style="display:block;border:0">`
  const end = [...linked.matchAll(/<\/body/gi)].at(-1)?.index ?? linked.length
  return linked.slice(0, end) + picture + linked.slice(end)
}
