import { useState } from 'preact/hooks'
import { call } from '../api.ts'
import { Refusal } from '../form.tsx'
import { useLoaded } from '../load.ts'
import type { PageProps } from '../page_props.ts'
import { ChoiceField, TextField, timeOf } from '../parts/field.tsx'
import { Table } from '../parts/table.tsx'
import { texts } from '../texts.ts'

type ApiKey = {
  readonly id: string
  readonly key_prefix: string
  readonly key_type: string
  readonly environment: string
  readonly is_active: boolean
  readonly last_used_at: string | null
}
type Token = {
  readonly id: string
  readonly name: string
  readonly token_prefix: string
  readonly scopes: readonly string[]
  readonly project_ids: readonly string[] | null
  readonly expires_at: string | null
  readonly last_used_at: string | null
  readonly revoked_at: string | null
}
type Act = (operation: string, input: Parameters<typeof call>[1]) => Promise<Readonly<Record<string, unknown>>>

const keysPath = '/v1/admin/projects/{projectId}/api-keys'

/** A key or a token as it was made: its text is never shown again. */
const Secret = ({ text }: { text: string }) => {
  const [isCopied, setCopied] = useState(false)
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setCopied(true)
    } catch {
      // no clipboard without https, or without leave: the text can be selected
      setCopied(false)
    }
  }
  return (
    <section class="card" aria-label={texts.secret}>
      <p>{texts.secretAbout}</p>
      <pre>{text}</pre>
      <button type="button" onClick={copy}>
        {isCopied ? texts.copied : texts.copy}
      </button>
    </section>
  )
}

const ApiKeys = ({ projectId, keys, act }: { projectId: string; keys: readonly ApiKey[]; act: Act }) => {
  const [type, setType] = useState('client')
  const [environment, setEnvironment] = useState('production')
  const create = (event: Event) => {
    event.preventDefault()
    void act(`POST ${keysPath}`, { path: { projectId }, body: { key_type: type, environment } })
  }
  const revoke = (key: ApiKey) => {
    if (confirm(texts.confirmKey(key.key_prefix)))
      void act(`DELETE ${keysPath}/{keyId}`, { path: { projectId, keyId: key.id } })
  }
  return (
    <>
      <h2>{texts.apiKeys}</h2>
      <Table label={texts.apiKeys} columns={texts.keyColumns}>
        {keys.map((key) => (
          <tr key={key.id}>
            <td>{key.key_prefix}…</td>
            <td>
              {key.key_type}, {key.environment}
            </td>
            <td>{timeOf(key.last_used_at)}</td>
            <td>
              {key.is_active ? (
                <button type="button" class="danger" onClick={() => revoke(key)}>
                  {texts.deactivate(key.key_prefix)}
                </button>
              ) : (
                texts.inactive
              )}
            </td>
          </tr>
        ))}
      </Table>
      <form class="row" onSubmit={create} aria-label={texts.newKey}>
        <ChoiceField label={texts.keyType} value={type} onValue={setType}>
          <option value="client">client</option>
          <option value="server">server</option>
        </ChoiceField>
        <ChoiceField label={texts.environment} value={environment} onValue={setEnvironment}>
          <option value="production">production</option>
          <option value="development">development</option>
        </ChoiceField>
        <button type="submit">{texts.newKey}</button>
      </form>
    </>
  )
}

const Tokens = ({ projectId, tokens, act }: { projectId: string; tokens: readonly Token[]; act: Act }) => {
  const [name, setName] = useState('')
  const [scopes, setScopes] = useState('*:read')
  const [days, setDays] = useState('90')
  const create = (event: Event) => {
    event.preventDefault()
    const body = {
      name,
      scopes: scopes.split(/[\s,]+/).filter(Boolean),
      project_ids: [projectId],
      expires_in_days: days === '' ? null : Number(days),
    }
    void act('POST /v1/admin/tokens', { body })
  }
  return (
    <>
      <h2>{texts.tokens}</h2>
      <p>{texts.tokensAbout}</p>
      {tokens.length === 0 && <p>{texts.nothing}</p>}
      <ul class="cards">
        {tokens.map((token) => (
          <li key={token.id} class="card">
            <b>{token.name}</b> {token.token_prefix}… · {token.scopes.join(', ')} ·{' '}
            {token.revoked_at
              ? texts.inactive
              : token.expires_at
                ? texts.validUntil(timeOf(token.expires_at))
                : texts.validAlways}
            {!token.revoked_at && (
              <span class="actions">
                <button
                  type="button"
                  onClick={() => act('POST /v1/admin/tokens/{tokenId}/rotate', { path: { tokenId: token.id } })}
                >
                  {texts.rotate(token.name)}
                </button>
                <button
                  type="button"
                  class="danger"
                  onClick={() => act('DELETE /v1/admin/tokens/{tokenId}', { path: { tokenId: token.id } })}
                >
                  {texts.revoke(token.name)}
                </button>
              </span>
            )}
          </li>
        ))}
      </ul>
      <form class="row" onSubmit={create} aria-label={texts.newToken}>
        <TextField label={texts.name} value={name} onValue={setName} isRequired />
        <TextField label={texts.scopes} value={scopes} onValue={setScopes} isRequired />
        <TextField label={texts.days} type="number" value={days} onValue={setDays} />
        <button type="submit">{texts.newToken}</button>
      </form>
    </>
  )
}

/** API keys of the project and the developer's personal access tokens: each is shown once, when it is made. */
export const Keys = ({ projectId }: PageProps) => {
  const keys = useLoaded(`keys ${projectId}`, async () => {
    const { data } = await call('GET /v1/admin/projects/{projectId}', { path: { projectId } })
    return (data as { api_keys: readonly ApiKey[] }).api_keys
  })
  const tokens = useLoaded('tokens', async () => {
    const all = (await call('GET /v1/admin/tokens', { query: { limit: 100 } })).data as readonly Token[]
    return all.filter(({ project_ids: of }) => of === null || of.includes(projectId))
  })
  const [secret, setSecret] = useState('')
  const [failure, setFailure] = useState<unknown>()
  const act: Act = async (operation, input) => {
    setFailure(undefined)
    setSecret('')
    try {
      const data = (await call(operation, input)).data as Readonly<Record<string, unknown>>
      setSecret(String(data['key'] ?? data['token'] ?? ''))
      keys.again()
      tokens.again()
      return data
    } catch (reason) {
      setFailure(reason)
      return {}
    }
  }
  return (
    <>
      <h1>{texts.keys}</h1>
      <Refusal error={failure ?? keys.error ?? tokens.error} />
      <div role="status">{secret !== '' && <Secret key={secret} text={secret} />}</div>
      {keys.value && <ApiKeys projectId={projectId} keys={keys.value} act={act} />}
      {tokens.value && <Tokens projectId={projectId} tokens={tokens.value} act={act} />}
    </>
  )
}
