import { Fragment, isValidElement, type ReactNode, useMemo, useRef } from 'react'

/** A component that can say in words what it shows; undefined where words are not all that it shows. */
type Worded = { readonly words?: (props: never) => string | undefined }
type Props = Readonly<Record<string, unknown>> & { readonly children?: ReactNode }

/** Elements that show more than their text, or that are pressed or hovered. */
const speechless = new Set(['a', 'button', 'input', 'select', 'textarea', 'label', 'img', 'svg', 'time'])

/** The text of a cell, '' where it is empty. Undefined where it holds more than a text, such as something to press. */
export const textOf = (node: ReactNode): string | undefined => {
  if (node === null || node === undefined || typeof node === 'boolean' || node === '—') return ''
  if (typeof node === 'string' || typeof node === 'number' || typeof node === 'bigint') return String(node).trim()
  if (Array.isArray(node)) {
    const texts = (node as readonly ReactNode[]).map(textOf)
    return texts.includes(undefined) ? undefined : texts.filter(Boolean).join(' ')
  }
  if (!isValidElement<Props>(node)) return undefined
  const { type, props } = node
  const { words } = type as Worded
  if (words) {
    const said = words(props as never)
    return said === undefined ? undefined : textOf(said)
  }
  if (type !== Fragment && (typeof type !== 'string' || speechless.has(type))) return undefined
  return Object.values(props).some((value) => typeof value === 'function') ? undefined : textOf(props.children)
}

export type Shown<R> = { readonly title: string; readonly show: (row: R) => ReactNode }

/** From how many rows on a value that all of them have tells nothing. A column that is empty in two rows is empty. */
const fewest = 3

/** Whether all rows show this text in a column. */
const isSame = <R>({ show }: Shown<R>, rows: readonly R[], text: string | undefined): boolean =>
  text !== undefined && rows.every((row) => textOf(show(row)) === text)

/**
 * The columns that tell nothing, by their title: those that are empty in every row, and those that are the same in all
 * of several, with what they show. The first column names the row and is never among them.
 */
export const untold = <R>(columns: readonly Shown<R>[], rows: readonly R[]): ReadonlyMap<string, string> => {
  const [first] = rows
  if (first === undefined || rows.length === 1) return new Map()
  return new Map(
    columns.slice(1).flatMap((column) => {
      const text = textOf(column.show(first))
      const isTold = text === undefined || (text !== '' && rows.length < fewest) || !isSame(column, rows, text)
      return isTold ? [] : [[column.title, text] as const]
    }),
  )
}

/** What the columns say that are left out, for the foot of the table. */
export const untoldWords = (left: ReadonlyMap<string, string>): string => {
  const same = [...left].filter(([, text]) => text !== '').map(([title, text]) => `${title} ${text}`)
  const none = [...left].filter(([title, text]) => text === '' && title !== 'Actions').map(([title]) => title)
  return [
    ...(same.length > 0 ? [`The same in all: ${same.join(', ')}.`] : []),
    ...(none.length > 0 ? [`Empty: ${none.join(', ')}.`] : []),
  ].join(' ')
}

/**
 * The columns of a table without those that tell nothing, and words for the others. The first rows decide which. From
 * then on a column comes where other rows differ, and none goes: a table stays as people have begun to read it. Nothing
 * is left out where the first rows are narrowed, since what they are narrowed by is the same in all of them.
 */
export const useTelling = <R, C extends Shown<R>>(
  columns: readonly C[],
  rows: readonly R[],
  isNarrowed = false,
): { readonly columns: readonly C[]; readonly words: string } => {
  const known = useRef<ReadonlyMap<string, string>>(undefined)
  const left = useMemo(() => {
    const before = known.current
    if (rows.length === 0) return before
    known.current = !before
      ? isNarrowed
        ? new Map()
        : untold(columns, rows)
      : new Map(
          columns.flatMap((column) => {
            const text = before.get(column.title)
            return text !== undefined && isSame(column, rows, text) ? [[column.title, text] as const] : []
          }),
        )
    return known.current
  }, [rows])
  if (!left || left.size === 0) return { columns, words: '' }
  return { columns: columns.filter(({ title }) => !left.has(title)), words: untoldWords(left) }
}
