import { useCallback, useEffect, useState } from 'preact/hooks'

export type Loaded<T> = { readonly value?: T; readonly error?: unknown; readonly again: () => void }

/** What a page shows: asked for when `key` changes; an answer that comes after another key was asked for is dropped. */
export const useLoaded = <T>(key: string, load: () => Promise<T>): Loaded<T> => {
  const [state, setState] = useState<{ key: string; value?: T; error?: unknown }>({ key: '' })
  const [turn, setTurn] = useState(0)
  const again = useCallback(() => setTurn((before) => before + 1), [])
  // the key says what is loaded; turn asks again
  useEffect(() => {
    let isWanted = true
    load().then(
      (value) => isWanted && setState({ key, value }),
      (error: unknown) => isWanted && setState({ key, error }),
    )
    return () => {
      isWanted = false
    }
  }, [key, turn])
  const { key: of, ...known } = state
  return of === key ? { ...known, again } : { again }
}
