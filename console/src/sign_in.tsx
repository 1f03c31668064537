import { useState } from 'preact/hooks'
import { callAsVisitor, type Row, signIn } from './api.ts'
import { Form, Refusal } from './form.tsx'
import type { Schema } from './schema.ts'
import { texts } from './texts.ts'

type Way = 'login' | 'signup' | 'code'
const text = (maxLength: number): Schema => ({ type: 'string', maxLength })
const email: Schema = { type: 'string', format: 'email', maxLength: 320 }

const Secret = ({ way }: { way: 'login' | 'signup' }) => {
  const [error, setError] = useState<unknown>()
  const send = async (event: SubmitEvent) => {
    event.preventDefault()
    const entries = [...new FormData(event.currentTarget as HTMLFormElement)]
    setError(undefined)
    try {
      await signIn(way, Object.fromEntries(entries.filter(([, value]) => value !== '')) as Row)
    } catch (reason) {
      setError(reason)
    }
  }
  const isNew = way === 'signup'
  return (
    <form aria-label={isNew ? texts.signUp : texts.signIn} onSubmit={send}>
      <div class="field">
        <label for="email">{texts.email}</label>
        <input id="email" name="email" type="email" autocomplete="username" required />
      </div>
      <div class="field">
        <label for="password">{texts.password}</label>
        <input
          id="password"
          name="password"
          type="password"
          autocomplete={isNew ? 'new-password' : 'current-password'}
          required
        />
      </div>
      {isNew && (
        <>
          <div class="field">
            <label for="name">{texts.name}</label>
            <input id="name" name="name" autocomplete="name" maxLength={200} />
          </div>
          <div class="field">
            <label for="invite_code">{texts.invite}</label>
            <input id="invite_code" name="invite_code" autocomplete="off" />
          </div>
        </>
      )}
      <Refusal error={error} />
      <button type="submit">{isNew ? texts.signUp : texts.signIn}</button>
    </form>
  )
}

const Code = () => {
  const [address, setAddress] = useState<string>()
  const schema: Schema = address
    ? { properties: { code: text(20), invite_code: text(200) }, required: ['code'] }
    : { properties: { email }, required: ['email'] }
  const send = async (body: Record<string, unknown>) => {
    if (address) return signIn('code', { email: address, ...body })
    await callAsVisitor('POST /v1/auth/developer/otp/request', { body })
    setAddress(String(body['email']))
  }
  return (
    <Form
      key={address ?? ''}
      name={texts.withCode}
      schema={schema}
      named={{}}
      submit={address ? texts.signIn : texts.sendCode}
      onSubmit={send}
    />
  )
}

const stateKey = 'trellis-console-github'

/** The page that GitHub returns to: the state must be the one that this tab was given. */
export const finishGithub = async (address: URL): Promise<void> => {
  const [code, state] = [address.searchParams.get('code'), address.searchParams.get('state')]
  const begun = sessionStorage.getItem(stateKey)
  sessionStorage.removeItem(stateKey)
  if (code && state && state === begun) await signIn('github', { code, state })
}

/** The page says whether its server has a GitHub application. */
const hasGithub = () => document.getElementById('console')?.dataset['github'] === 'true'

const beginGithub = async () => {
  const query = { redirect_uri: `${location.origin}/console/github` }
  const { data } = await callAsVisitor('GET /v1/auth/developer/github/start', { query })
  const { authorize_url, state } = data as { authorize_url: string; state: string }
  sessionStorage.setItem(stateKey, state)
  location.assign(authorize_url)
}

export const SignIn = ({ hasEnded, refused }: { hasEnded: boolean; refused: unknown }) => {
  const [way, setWay] = useState<Way>('login')
  const [error, setError] = useState<unknown>(refused)
  const others: readonly (readonly [Way, string])[] = [
    ['login', texts.withPassword],
    ['code', texts.withCode],
    ['signup', texts.signUp],
  ]
  return (
    <main id="content" class="narrow">
      <h1>{way === 'signup' ? texts.signUp : texts.signIn}</h1>
      {hasEnded && <p role="status">{texts.ended}</p>}
      {way === 'code' ? <Code /> : <Secret key={way} way={way} />}
      <Refusal error={error} />
      <ul class="ways">
        {others
          .filter(([other]) => other !== way)
          .map(([other, label]) => (
            <li key={other}>
              <button type="button" class="quiet" onClick={() => setWay(other)}>
                {label}
              </button>
            </li>
          ))}
        {hasGithub() && (
          <li>
            <button type="button" class="quiet" onClick={() => beginGithub().catch(setError)}>
              {texts.withGithub}
            </button>
          </li>
        )}
      </ul>
    </main>
  )
}
