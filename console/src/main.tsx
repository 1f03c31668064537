import './style.css'
import { render } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { callAsVisitor, hasSession, onSession, renew } from './api.ts'
import type { Document } from './document.ts'
import { Refusal } from './form.tsx'
import { go, useAddress } from './router.ts'
import { Shell } from './shell.tsx'
import { finishGithub, SignIn } from './sign_in.tsx'
import { texts } from './texts.ts'

type State = 'starting' | 'in' | 'out' | 'ended'

/** The session of the cookie if there is one; the page that GitHub returns to begins one. */
const start = async (): Promise<void> => {
  const address = new URL(location.href)
  if (address.pathname !== '/console/github') {
    await renew()
    return
  }
  go('/console', true)
  await finishGithub(address)
}

const Console = () => {
  const address = useAddress()
  const [state, setState] = useState<State>('starting')
  const [document, setDocument] = useState<Document>()
  const [error, setError] = useState<unknown>()
  useEffect(() => {
    const stop = onSession((isSignedIn) => {
      setState((before) => (isSignedIn ? 'in' : before === 'in' ? 'ended' : 'out'))
    })
    start()
      .then(() => setState((before) => (before === 'starting' ? (hasSession() ? 'in' : 'out') : before)))
      .catch((reason: unknown) => {
        setError(reason)
        setState('out')
      })
    callAsVisitor('GET /openapi.json').then((value) => setDocument(value as unknown as Document), setError)
    return stop
  }, [])
  if (state === 'out' || state === 'ended') return <SignIn key={state} hasEnded={state === 'ended'} refused={error} />
  if (state === 'in' && document) return <Shell document={document} address={address} />
  return (
    <main id="content">
      <h1>{texts.product}</h1>
      {error === undefined ? <p role="status">{texts.loading}</p> : <Refusal error={error} />}
    </main>
  )
}

const place = globalThis.document.getElementById('console')
if (place) render(<Console />, place)
