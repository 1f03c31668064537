import { useLayoutEffect, useState } from 'preact/hooks'
import { call, type Row } from '../api.ts'
import { Refusal } from '../form.tsx'
import { useLoaded } from '../load.ts'
import type { PageProps } from '../page_props.ts'
import { timeOf } from '../parts/field.tsx'
import { texts } from '../texts.ts'

type Item = {
  readonly id: string
  readonly subject_type: string
  readonly subject_user_id: string | null
  readonly snapshot: Row
  readonly source: string
  readonly reasons: Row
  readonly report_count: number
  readonly created_at: string
}

type Verdict = 'approve' | 'reject' | 'escalate'
const keys: Readonly<Record<string, Verdict>> = { a: 'approve', r: 'reject', e: 'escalate' }

const textOfItem = ({ snapshot }: Item) =>
  Object.entries(snapshot)
    .filter(([, value]) => typeof value === 'string' && value !== '')
    .map(([name, value]) => `${name}: ${String(value)}`)
    .join('\n') || JSON.stringify(snapshot)

/** The queue, worked by keyboard: j and k go on and back, a approves, r rejects, e leaves an item to somebody else. */
export const ModerationQueue = ({ projectId }: PageProps) => {
  const load = async () => {
    const input = { path: { projectId }, query: { status: 'pending', limit: 50 } }
    return (await call('GET /v1/admin/projects/{projectId}/moderation/queue', input)).data as readonly Item[]
  }
  const { value, error, again } = useLoaded(`moderation ${projectId}`, load)
  const [place, setPlace] = useState(0)
  const [settled, setSettled] = useState<readonly string[]>([])
  const [said, setSaid] = useState('')
  const [failure, setFailure] = useState<unknown>()
  const items = (value ?? []).filter(({ id }) => !settled.includes(id))
  const at = Math.min(place, Math.max(0, items.length - 1))
  const current = items[at]

  const judge = async (verdict: Verdict) => {
    if (!current) return
    setFailure(undefined)
    // the next one is shown at once; a refusal brings this one back
    setSettled((before) => [...before, current.id])
    try {
      await call(`POST /v1/admin/projects/{projectId}/moderation/queue/{itemId}/${verdict}`, {
        path: { projectId, itemId: current.id },
        ...(verdict === 'escalate' ? {} : { body: {} }),
      })
      setSaid(texts.judged[verdict])
      if (items.length === 1) again()
    } catch (reason) {
      setSettled((before) => before.filter((id) => id !== current.id))
      setFailure(reason)
    }
  }
  // before the next key can come: it is about the item that is seen
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      const isTyping = event.target instanceof Element && event.target.closest('input, textarea, select') !== null
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return
      if (event.key === 'j') setPlace(Math.min(at + 1, Math.max(0, items.length - 1)))
      if (event.key === 'k') setPlace(Math.max(0, at - 1))
      const verdict = keys[event.key]
      if (verdict) void judge(verdict)
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  })
  return (
    <>
      <h1>{texts.moderationQueue}</h1>
      <p>{texts.moderationKeys}</p>
      <Refusal error={failure ?? error} />
      <p role="status">
        {said} {value && texts.waiting(items.length)}
      </p>
      {!value && !error && <p role="status">{texts.loading}</p>}
      {value && items.length === 0 && <p>{texts.nothing}</p>}
      {current && (
        <article class="card" aria-label={current.subject_type}>
          <h2>
            {current.subject_type} · {timeOf(current.created_at)}
          </h2>
          <pre>{textOfItem(current)}</pre>
          <p>
            {current.source} · {texts.reports(current.report_count)} · <code>{JSON.stringify(current.reasons)}</code>
          </p>
          {current.subject_user_id && (
            <p>
              <a href={`/console/projects/${projectId}/user/timeline?item=${current.subject_user_id}`}>
                {texts.timeline}
              </a>
            </p>
          )}
          <p class="actions">
            {Object.entries(keys).map(([key, verdict]) => (
              <button key={key} type="button" onClick={() => judge(verdict)} aria-keyshortcuts={key}>
                {texts.verdicts[verdict]} ({key})
              </button>
            ))}
          </p>
        </article>
      )}
    </>
  )
}
