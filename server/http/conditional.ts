/** The tags of a header (RFC 9110, 8.8.3), as they were sent: a tag may have commas in its quotes. */
const tagsOf = (header: string): readonly string[] => header.match(/(?:W\/)?"[^"]*"/g) ?? []

/** If-None-Match (13.1.2): whether the client has this already. The comparison is weak: a proxy that compresses may have made the tag weak. */
export const isKnown = (header: string | undefined, etag: string): boolean =>
  header !== undefined && (header.trim() === '*' || tagsOf(header).some((tag) => tag.replace(/^W\//, '') === etag))

/** If-Match (13.1.1): the tags that may match, none where any version may. The comparison is strong: a weak tag never matches, nor what is no tag. */
export const wantedTags = (header: string | undefined): readonly string[] | undefined =>
  header === undefined || header.trim() === '*' ? undefined : tagsOf(header).filter((tag) => !tag.startsWith('W/'))
