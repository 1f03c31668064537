import { Code, Skeleton, Text } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { callAny } from '../api.ts'
import { useProject } from '../parts/page.tsx'
import { counted, Failure } from '../parts/states.tsx'

type Plan = {
  readonly sql: readonly string[]
  readonly rewrites_table: boolean
  readonly rows: number
  readonly estimated_ms: number
  readonly warnings: readonly string[]
}

/** The statements that a change would run: the server is asked, and nothing is changed. */
export const SqlPreview = ({
  operation,
  path: own = {},
  body,
  only = () => true,
  change = (statement) => statement,
}: {
  operation: string
  path?: Readonly<Record<string, string>>
  body: Readonly<Record<string, unknown>>
  /** Which of the statements are shown. */
  only?: (statement: string) => boolean
  change?: (statement: string) => string
}) => {
  const { path } = useProject()
  const [settled] = useDebouncedValue(JSON.stringify(body), 300)
  const { data, error, isPending } = useQuery({
    queryKey: ['dry run', path.projectId, operation, own, settled],
    retry: false,
    placeholderData: (before) => before,
    queryFn: async () =>
      (await callAny(operation, { path: { ...path, ...own }, query: { dry_run: true }, body: JSON.parse(settled) }))
        .data as Plan,
  })
  if (error) return <Failure error={error} />
  if (isPending || !data) return <Skeleton h={160} />
  const shown = data.sql.filter(only).map(change)
  return (
    <>
      {data.warnings.map((warning) => (
        <Text key={warning} size="sm" c="var(--warn)" mb="xs">
          {warning}
        </Text>
      ))}
      <Code block data-code tabIndex={0} className="sql" aria-label="SQL">
        {shown.length > 0 ? `${shown.join(';\n\n')};` : 'Nothing to run.'}
      </Code>
      {data.rewrites_table && (
        <Text size="xs" c="dimmed" mt="xs">
          The table with {counted(data.rows, 'row')} is written again, in some {data.estimated_ms} ms.
        </Text>
      )}
    </>
  )
}
