import { useEffect, useState } from 'preact/hooks'
import { type Loaded, useLoaded } from '../load.ts'

/** As useLoaded, and again every so many seconds while the page is seen and not paused; what was there stays until the next answer. */
export const usePolled = <T>(key: string, load: () => Promise<T>, seconds: number, isPaused = false): Loaded<T> => {
  const loaded = useLoaded(key, load)
  const [kept, setKept] = useState<{ key: string; value: T }>()
  useEffect(() => {
    if (loaded.value !== undefined) setKept({ key, value: loaded.value })
  }, [key, loaded.value])
  useEffect(() => {
    if (isPaused) return
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') loaded.again()
    }, seconds * 1000)
    return () => clearInterval(timer)
  }, [isPaused, seconds, loaded.again])
  const value = loaded.value ?? (kept?.key === key ? kept.value : undefined)
  return { ...loaded, ...(value === undefined ? {} : { value }) }
}
