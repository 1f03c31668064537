import { Text } from '@mantine/core'
import { Chart, type Point } from './chart.tsx'
import { useAnswer } from './stats.tsx'

/** What an area counted on each of the last 30 days (UTC): a chart for each of its series that is named. */
export const Days = ({
  operation,
  path = {},
  query = {},
  charts,
}: {
  /** `GET /v1/admin/projects/{projectId}/.../daily` */
  readonly operation: string
  readonly path?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | undefined>>
  /** Names of series with their titles, and what is to be known of one. */
  readonly charts: readonly (readonly [name: string, title: string, about?: string])[]
}) => {
  const { data, error, refetch } = useAnswer<{ readonly series: Readonly<Record<string, readonly Point[]>> }>(
    operation,
    path,
    query,
  )
  return (
    <div className={charts.length > 1 ? 'pair' : undefined}>
      {charts.map(([name, title, about]) => {
        const points = data?.series[name]
        return (
          <Chart
            key={name}
            title={title}
            kind="bar"
            height={180}
            // a grid without a bar says less than a sentence
            points={points?.some(({ value }) => value !== 0) ? points : points && []}
            error={error}
            onRetry={refetch}
          >
            {about && (
              <Text size="xs" c="dimmed" mt={6}>
                {about}
              </Text>
            )}
          </Chart>
        )
      })}
    </div>
  )
}
