import { columns } from '#server/columns.ts'

/** How results are shown: for a person, or as JSON for a program. */
export type Output = { readonly json: boolean }

export const print = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

export const table = (rows: readonly (readonly string[])[]) => {
  for (const line of columns(rows)) print(line)
}

/** A result as JSON where that is asked for, or else for a person. */
export const show = <T>({ json }: Output, result: T, person: (result: T) => void): void => {
  if (json) print(JSON.stringify(result, null, 2))
  else person(result)
}
