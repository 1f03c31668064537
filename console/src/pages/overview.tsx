import { call, type Row } from '../api.ts'
import { Refusal } from '../form.tsx'
import { useLoaded } from '../load.ts'
import { Plot, type Point } from '../parts/plot.tsx'
import { texts } from '../texts.ts'
import { OperationList } from './operations.tsx'

const days = 30
const dayOf = (ago: number) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10)

type Series = Readonly<Record<string, readonly { readonly date: string; readonly value: number }[]>>

/** What a project does: its last thirty days as plots, and the operations that run. */
export const Overview = ({ projectId, rows }: { projectId: string; rows: Row }) => {
  const path = { projectId }
  const usage = useLoaded(`usage ${projectId}`, async () => {
    const query = { from: dayOf(days - 1), to: dayOf(0) }
    const { data } = await call('GET /v1/admin/projects/{projectId}/billing/usage', { path, query })
    return (data as { series: Series }).series
  })
  const pointsOf = (name: string): readonly Point[] =>
    (usage.value?.[name] ?? []).map(({ date, value }) => ({ label: date.slice(5), value }))
  return (
    <>
      <h1>{texts.overview}</h1>
      <p>
        {String(rows['tier'] ?? '')} · {String(rows['environment'] ?? '')}
      </p>
      <Refusal error={usage.error} />
      {!usage.value && !usage.error && <p role="status">{texts.loading}</p>}
      {usage.value && (
        <div class="plots">
          {Object.entries(texts.series).map(([name, title]) => (
            <Plot key={name} title={title} points={pointsOf(name)} />
          ))}
        </div>
      )}
      <h2>{texts.operations}</h2>
      <OperationList projectId={projectId} most={5} />
    </>
  )
}
