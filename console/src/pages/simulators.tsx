import { useState } from 'preact/hooks'
import { call, type Row } from '../api.ts'
import { Refusal } from '../form.tsx'
import { useLoaded } from '../load.ts'
import type { PageProps } from '../page_props.ts'
import { ChoiceField, TextField } from '../parts/field.tsx'
import { Plot } from '../parts/plot.tsx'
import { texts } from '../texts.ts'

type Definition = Row & { readonly key: string; readonly name: string }

const useDefinitions = (projectId: string, list: string) =>
  useLoaded(`${list} ${projectId}`, async () => {
    const input = { path: { projectId }, query: { limit: 100 } }
    return (await call(`GET /v1/admin/projects/{projectId}/${list}`, input)).data as readonly Definition[]
  })

const Choice = ({
  label,
  definitions,
  value,
  onValue,
}: {
  label: string
  definitions: readonly Definition[]
  value: string
  onValue: (key: string) => void
}) => (
  <ChoiceField label={label} value={value} onValue={onValue} isRequired>
    <option value="">{texts.unset}</option>
    {definitions.map(({ key, name }) => (
      <option key={key} value={key}>
        {name}
      </option>
    ))}
  </ChoiceField>
)

/** The rules of a streak that one changes, all of them numbers. */
const rules = ['min_count', 'grace_hours', 'freezes_initial', 'freezes_max', 'freeze_earn_every'] as const

type StreakResult = {
  readonly users: number
  readonly is_estimate: boolean
  readonly margin: number
  readonly broken_before: number
  readonly broken_after: number
  readonly median_length_before: number | null
  readonly median_length_after: number | null
}

/** What other rules would have made of the events that are there: before and after, and nothing is written. */
export const StreakSimulator = ({ projectId }: PageProps) => {
  const { value, error } = useDefinitions(projectId, 'streaks')
  const [key, setKey] = useState('')
  const [changed, setChanged] = useState<Readonly<Record<string, string>>>({})
  const [result, setResult] = useState<StreakResult>()
  const [failure, setFailure] = useState<unknown>()
  const definition = value?.find((one) => one.key === key)
  const simulate = async (event: Event) => {
    event.preventDefault()
    setFailure(undefined)
    const entries = Object.entries(changed).filter(([, text]) => text !== '')
    try {
      const { data } = await call('POST /v1/admin/projects/{projectId}/streaks/{idOrKey}/simulate', {
        path: { projectId, idOrKey: key },
        body: { definition: Object.fromEntries(entries.map(([name, text]) => [name, Number(text)])) },
      })
      setResult(data as StreakResult)
    } catch (reason) {
      setResult(undefined)
      setFailure(reason)
    }
  }
  return (
    <>
      <h1>{texts.streakSimulator}</h1>
      <p>{texts.simulatorAbout}</p>
      <Refusal error={error} />
      <form onSubmit={simulate} aria-label={texts.streakSimulator}>
        <Choice label={texts.streak} definitions={value ?? []} value={key} onValue={setKey} />
        {definition &&
          rules.map((name) => (
            <TextField
              key={name}
              label={`${name.replaceAll('_', ' ')} (${texts.now} ${String(definition[name] ?? '')})`}
              type="number"
              value={changed[name] ?? ''}
              onValue={(text) => setChanged((before) => ({ ...before, [name]: text }))}
            />
          ))}
        <button type="submit" disabled={!definition}>
          {texts.simulate}
        </button>
      </form>
      <Refusal error={failure} />
      {result && (
        <section aria-label={texts.answer}>
          <p role="status">{texts.simulatedUsers(result.users, result.is_estimate ? result.margin : null)}</p>
          <div class="plots">
            <Plot
              title={texts.broken}
              points={[
                { label: texts.before, value: result.broken_before },
                { label: texts.after, value: result.broken_after },
              ]}
            />
            <Plot
              title={texts.medianLength}
              points={[
                { label: texts.before, value: result.median_length_before ?? 0 },
                { label: texts.after, value: result.median_length_after ?? 0 },
              ]}
            />
          </div>
        </section>
      )}
    </>
  )
}

type XpResult = {
  readonly awards: number
  readonly users: number
  readonly total: number
  readonly is_estimate: boolean
  readonly margin: number
  readonly per_user: { readonly median: number | null; readonly p90: number | null; readonly max: number | null }
}

/** What a rule of XP would have given since a day. */
export const XpSimulator = ({ projectId }: PageProps) => {
  const { value, error } = useDefinitions(projectId, 'xp/rules')
  const [key, setKey] = useState('')
  const [since, setSince] = useState(new Date(Date.now() - 7 * 86_400_000).toISOString().slice(0, 10))
  const [result, setResult] = useState<XpResult>()
  const [failure, setFailure] = useState<unknown>()
  const simulate = async (event: Event) => {
    event.preventDefault()
    setFailure(undefined)
    try {
      const { data } = await call('POST /v1/admin/projects/{projectId}/xp/rules/{idOrKey}/simulate', {
        path: { projectId, idOrKey: key },
        body: { since: `${since}T00:00:00Z` },
      })
      setResult(data as XpResult)
    } catch (reason) {
      setResult(undefined)
      setFailure(reason)
    }
  }
  const { median = 0, p90 = 0, max = 0 } = result?.per_user ?? {}
  return (
    <>
      <h1>{texts.xpSimulator}</h1>
      <p>{texts.simulatorAbout}</p>
      <Refusal error={error} />
      <form onSubmit={simulate} aria-label={texts.xpSimulator}>
        <Choice label={texts.rule} definitions={value ?? []} value={key} onValue={setKey} />
        <TextField label={texts.since} type="date" value={since} onValue={setSince} isRequired />
        <button type="submit" disabled={key === ''}>
          {texts.simulate}
        </button>
      </form>
      <Refusal error={failure} />
      {result && (
        <section aria-label={texts.answer}>
          <p role="status">{texts.simulatedXp(result.awards, result.users, result.total)}</p>
          <Plot
            title={texts.perUser}
            points={[
              { label: texts.median, value: median ?? 0 },
              { label: '90 %', value: p90 ?? 0 },
              { label: texts.largest, value: max ?? 0 },
            ]}
          />
        </section>
      )}
    </>
  )
}
