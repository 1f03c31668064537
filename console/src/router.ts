import { useEffect, useState } from 'preact/hooks'

const changed = 'console:navigated'

export const go = (to: string, isReplaced = false): void => {
  history[isReplaced ? 'replaceState' : 'pushState'](null, '', to)
  dispatchEvent(new Event(changed))
}

/** The address of the page. Links stay plain `<a href>`: the browser opens them in new tabs as ever. */
export const useAddress = (): URL => {
  const [address, setAddress] = useState(location.href)
  useEffect(() => {
    const read = () => setAddress(location.href)
    const follow = (event: MouseEvent) => {
      const link = event.target instanceof Element ? event.target.closest('a') : null
      const isPlain = event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
      if (!link || !isPlain || link.target !== '' || link.origin !== location.origin) return
      if (!link.pathname.startsWith('/console') || link.hash !== '') return
      event.preventDefault()
      go(link.href)
    }
    addEventListener(changed, read)
    addEventListener('popstate', read)
    document.addEventListener('click', follow)
    return () => {
      removeEventListener(changed, read)
      removeEventListener('popstate', read)
      document.removeEventListener('click', follow)
    }
  }, [])
  return new URL(address)
}
