import { call, type Row } from '../api.ts'
import { Refusal } from '../form.tsx'
import type { PageProps } from '../page_props.ts'
import { timeOf } from '../parts/field.tsx'
import { usePolled } from '../parts/polled.ts'
import { Table } from '../parts/table.tsx'
import { texts } from '../texts.ts'

type Operation = Row & {
  readonly operation_id: string
  readonly type: string
  readonly status: string
  readonly progress: { readonly done: number; readonly total: number } | null
  readonly failed_reason: string | null
  readonly created_at: string
}

const Progress = ({ operation }: { operation: Operation }) => {
  const { status, progress, type } = operation
  if (!['queued', 'running', 'waiting'].includes(status)) return <>{status}</>
  return (
    <>
      {status}{' '}
      {progress ? (
        <progress value={progress.done} max={Math.max(1, progress.total)} aria-label={type}>
          {`${progress.done} / ${progress.total}`}
        </progress>
      ) : (
        <progress aria-label={type} />
      )}
    </>
  )
}

/** The newest operations, looked at again every two seconds. */
export const OperationList = ({ projectId, most }: { projectId: string; most: number }) => {
  const load = async () => {
    const input = { path: { projectId }, query: { limit: most } }
    return (await call('GET /v1/admin/projects/{projectId}/operations', input)).data as readonly Operation[]
  }
  const { value, error } = usePolled(`operations ${projectId} ${most}`, load, 2)
  return (
    <>
      <Refusal error={error} />
      {value?.length === 0 && <p>{texts.nothing}</p>}
      {value && value.length > 0 && (
        <Table label={texts.operations} columns={texts.operationColumns}>
          {value.map((operation) => (
            <tr key={operation.operation_id}>
              <td>{operation.type}</td>
              <td>
                <Progress operation={operation} />
              </td>
              <td>{timeOf(operation.created_at)}</td>
              <td>{operation.failed_reason}</td>
            </tr>
          ))}
        </Table>
      )}
    </>
  )
}

export const Operations = ({ projectId }: PageProps) => (
  <>
    <h1>{texts.operations}</h1>
    <OperationList projectId={projectId} most={50} />
  </>
)
