import { Skeleton } from '@mantine/core'
import { Bars } from '../parts/chart.tsx'
import { Card, Facts } from '../parts/page.tsx'
import { count, Failure } from '../parts/states.tsx'
import { useAnswer } from '../parts/stats.tsx'

type Summary = {
  readonly average: number | null
  readonly count: number
  readonly histogram: Readonly<Record<string, number>>
  readonly by_status: Readonly<Record<string, number>>
}
const stars = ['5', '4', '3', '2', '1']

/** What users think of all subjects together, or of those of one kind, and how many reviews wait. */
export const SummaryCard = ({ subject }: { subject: string | undefined }) => {
  const operation = 'GET /v1/admin/projects/{projectId}/reviews/summary'
  const { data, error, refetch } = useAnswer<Summary>(operation, {}, { subject })
  if (error) return <Failure error={error} onRetry={refetch} />
  if (!data) return <Skeleton h={160} />
  return (
    <div className="pair">
      <Card title="Summary">
        <Facts
          facts={[
            ['Average', data.average === null ? '—' : `${data.average} of 5`],
            ['Published', count(data.by_status['published'])],
            ['Waiting', count(data.by_status['pending'])],
            ['Rejected', count(data.by_status['rejected'])],
            ['Hidden', count(data.by_status['hidden'])],
          ]}
        />
      </Card>
      <Bars
        title="Published reviews"
        of="reviews"
        by="Stars"
        bars={stars.map((star) => ({ label: star, value: data.histogram[star] ?? 0 }))}
      />
    </div>
  )
}
