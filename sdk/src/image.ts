export type ImageChange = {
  /** Pixels, 1 to 4096; with one side alone the other follows. */
  readonly w?: number | undefined
  readonly h?: number | undefined
  readonly fit?: 'cover' | 'contain' | undefined
  readonly format?: 'webp' | 'jpeg' | 'png' | 'avif' | undefined
}

/** The address of a public image in another size or format, from its `public_url`. Null without an image, as a user may have none. */
export const imageUrl = <U extends string | null | undefined>(
  publicUrl: U,
  change: ImageChange,
): U extends string ? string : string | null => {
  if (!publicUrl) return null as never
  const pairs = (['w', 'h', 'fit', 'format'] as const)
    .filter((name) => change[name] !== undefined)
    .map((name) => `${name}=${change[name]}`)
  return (pairs.length > 0 ? `${publicUrl}?${pairs.join('&')}` : publicUrl) as never
}
