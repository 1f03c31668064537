/** A value of a day. */
export type Point = { readonly date: string; readonly value: number }
/** A value of one kind. */
export type Bar = { readonly label: string; readonly value: number }

/** What is drawn: values by day as an area or as bars, or values by kind. */
export type Drawn =
  | { readonly kind: 'area' | 'bar'; readonly name: string; readonly points: readonly Point[] }
  | { readonly kind: 'groups'; readonly name: string; readonly bars: readonly Bar[] }
