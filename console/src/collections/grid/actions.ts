import { useRef, useState } from 'react'

/** What a line of the grid does: rows and columns by their numbers, column 0 is the box that selects. */
export type Actions = {
  readonly activate: (row: number, column: number) => void
  readonly edit: (row: number, column: number, text?: string) => void
  /** Ends an edit with what was typed, and moves the cursor by rows and columns. */
  readonly commit: (row: number, column: number, text: string, by: readonly [number, number]) => void
  readonly leave: () => void
  readonly open: (row: number) => void
  readonly select: (row: number, isRange: boolean) => void
}

/** The same functions in every draw, so that rows that did not change are not drawn again. */
export const useSteady = (actions: Actions): Actions => {
  const latest = useRef(actions)
  latest.current = actions
  const [steady] = useState<Actions>(() => ({
    activate: (...input) => latest.current.activate(...input),
    edit: (...input) => latest.current.edit(...input),
    commit: (...input) => latest.current.commit(...input),
    leave: () => latest.current.leave(),
    open: (...input) => latest.current.open(...input),
    select: (...input) => latest.current.select(...input),
  }))
  return steady
}
