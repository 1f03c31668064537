import { useLayoutEffect, useRef } from 'react'

/** Keys that stand for actions of a page, `mod+z` among them. Nothing happens while somebody types, in a dialog, or behind a `g`, which begins a move. */
export const useKeys = (actions: Readonly<Record<string, (() => void) | undefined>>): void => {
  const moved = useRef(0)
  // before the next key can come: it is about what is seen
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      const isMove = Date.now() - moved.current < 1500
      moved.current = event.key === 'g' ? Date.now() : 0
      if (isMove || event.altKey) return
      if (event.target instanceof Element && event.target.closest('input, textarea, select, [role=dialog]')) return
      const action = actions[event.ctrlKey || event.metaKey ? `mod+${event.key}` : event.key]
      if (!action) return
      event.preventDefault()
      action()
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  })
}
