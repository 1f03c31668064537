import { useState } from 'preact/hooks'
import { call, type Row } from '../api.ts'
import { Refusal } from '../form.tsx'
import { useLoaded } from '../load.ts'
import type { PageProps } from '../page_props.ts'
import { ChoiceField, TextField } from '../parts/field.tsx'
import { go } from '../router.ts'
import { texts } from '../texts.ts'

type Preview = {
  readonly audience_count: number
  readonly is_estimate: boolean
  readonly margin: number
  readonly devices: number
  readonly skipped: Readonly<Record<string, number>>
  readonly rendered: { readonly title?: string; readonly body?: string }
}

const base = '/v1/admin/projects/{projectId}/push/campaigns'

/** A message to a segment or to everybody: seen as a phone shows it, counted, tried on one user, and sent or scheduled. It is a draft of a campaign meanwhile. */
export const PushComposer = ({ projectId }: PageProps) => {
  const [name, setName] = useState('')
  const [title, setTitle] = useState('')
  const [body, setBody] = useState('')
  const [link, setLink] = useState('')
  const [segment, setSegment] = useState('')
  const [user, setUser] = useState('')
  const [when, setWhen] = useState('')
  const [draft, setDraft] = useState('')
  const [preview, setPreview] = useState<Preview>()
  const [said, setSaid] = useState('')
  const [failure, setFailure] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  const segments = useLoaded(
    `segments ${projectId}`,
    async () =>
      (await call('GET /v1/admin/projects/{projectId}/segments', { path: { projectId }, query: { limit: 100 } }))
        .data as readonly Row[],
  )
  /** What was counted and rendered is no longer what is written. */
  const edit = (set: (value: string) => void) => (value: string) => {
    setPreview(undefined)
    set(value)
  }
  const of = (campaignId: string) => ({ path: { projectId, campaignId } })
  const stored = async (): Promise<string> => {
    const input = {
      name,
      audience: segment === '' ? { all: true } : { segment_id: segment },
      message: { title, body, ...(link === '' ? {} : { deep_link: link }) },
    }
    if (draft !== '') {
      await call(`PATCH ${base}/{campaignId}`, { ...of(draft), body: input })
      return draft
    }
    const { id } = (await call(`POST ${base}`, { path: { projectId }, body: input })).data as { id: string }
    setDraft(id)
    return id
  }
  /** Stores the draft as it stands, then does what was asked for with it. */
  const withDraft = async (work: (id: string) => Promise<unknown>) => {
    setBusy(true)
    setFailure(undefined)
    setSaid('')
    try {
      await work(await stored())
    } catch (reason) {
      setFailure(reason)
    } finally {
      setBusy(false)
    }
  }
  const show = (event: Event) => {
    event.preventDefault()
    void withDraft(async (id) => {
      const input = { ...of(id), body: user === '' ? {} : { user_id: user } }
      setPreview((await call(`POST ${base}/{campaignId}/preview`, input)).data as Preview)
    })
  }
  const tryOut = () =>
    withDraft(async (id) => {
      await call(`POST ${base}/{campaignId}/test`, { ...of(id), body: { user_ids: [user] } })
      setSaid(texts.testSent)
    })
  const send = () => {
    if (!confirm(when === '' ? texts.confirmSend : texts.confirmSchedule)) return
    void withDraft(async (id) => {
      const input = when === '' ? {} : { send_at: new Date(when).toISOString() }
      await call(`POST ${base}/{campaignId}/schedule`, { ...of(id), body: input })
      go(`/console/projects/${projectId}/push/campaigns?item=${id}`)
    })
  }
  const isReady = name !== '' && title !== '' && body !== ''
  return (
    <>
      <h1>{texts.pushComposer}</h1>
      <div class="beside">
        <form onSubmit={show} aria-label={texts.pushComposer}>
          <TextField label={texts.name} value={name} onValue={setName} isRequired />
          <TextField label={texts.messageTitle} value={title} onValue={edit(setTitle)} isRequired />
          <TextField label={texts.messageBody} value={body} onValue={edit(setBody)} isRequired />
          <TextField label={texts.deepLink} value={link} onValue={edit(setLink)} />
          <ChoiceField label={texts.audience} value={segment} onValue={edit(setSegment)}>
            <option value="">{texts.everybody}</option>
            {(segments.value ?? []).map((one) => (
              <option key={String(one['id'])} value={String(one['id'])}>
                {String(one['name'])}
              </option>
            ))}
          </ChoiceField>
          <TextField label={texts.previewUser} value={user} onValue={edit(setUser)} />
          <TextField label={texts.sendAt} type="datetime-local" value={when} onValue={setWhen} />
          <Refusal error={failure ?? segments.error} />
          <p class="actions">
            <button type="submit" disabled={isBusy || !isReady}>
              {texts.preview}
            </button>
            <button type="button" disabled={isBusy || !isReady || user === ''} onClick={tryOut}>
              {texts.sendTest}
            </button>
            <button type="button" disabled={isBusy || !isReady} onClick={send}>
              {when === '' ? texts.sendNow : texts.schedule}
            </button>
          </p>
          <p role="status">{said}</p>
        </form>
        <section aria-label={texts.preview}>
          <div class="phone">
            <b>{preview?.rendered.title ?? (title || texts.messageTitle)}</b>
            <p>{preview?.rendered.body ?? (body || texts.messageBody)}</p>
          </div>
          {preview && (
            <>
              <p class="count">
                {texts.reaches(preview.audience_count, preview.is_estimate ? preview.margin : null, preview.devices)}
              </p>
              <ul>
                {Object.entries(preview.skipped)
                  .filter(([, count]) => count > 0)
                  .map(([reason, count]) => (
                    <li key={reason}>{texts.skipped(count, reason)}</li>
                  ))}
              </ul>
            </>
          )}
        </section>
      </div>
    </>
  )
}
