import { useState } from 'react'

/** The row that a drawer or a question is about. While that closes the row stays, so that its words do not change. */
export const useChosen = <R>() => {
  const [one, set] = useState<R>()
  const [isOpen, setOpen] = useState(false)
  return {
    one,
    isOpen,
    choose: (row: R) => {
      set(row)
      setOpen(true)
    },
    close: () => setOpen(false),
  }
}
