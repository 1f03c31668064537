import { useState } from 'preact/hooks'
import { call } from '../api.ts'
import { Refusal } from '../form.tsx'
import type { PageProps } from '../page_props.ts'
import { ChoiceField, timeOf } from '../parts/field.tsx'
import { usePolled } from '../parts/polled.ts'
import { Table } from '../parts/table.tsx'
import { texts } from '../texts.ts'

type Delivery = {
  readonly id: string
  readonly event_name: string
  readonly status: string
  readonly failed_reason: unknown
  readonly attempt_count: number
  readonly created_at: string
  readonly attempts: readonly {
    readonly n: number
    readonly at: string
    readonly status_code: number | null
    readonly error: string | null
    readonly duration_ms: number
  }[]
}

const Attempts = ({ delivery }: { delivery: Delivery }) => (
  <details>
    <summary>{texts.attempts(delivery.attempt_count)}</summary>
    <ol>
      {delivery.attempts.map((attempt) => (
        <li key={attempt.n}>
          {timeOf(attempt.at)}: {attempt.status_code ?? attempt.error}, {attempt.duration_ms} ms
        </li>
      ))}
    </ol>
  </details>
)

/** Deliveries of a webhook with their attempts; those that failed can be sent again. */
export const WebhookDeliveries = ({ projectId, id }: PageProps) => {
  const [status, setStatus] = useState('')
  const [failure, setFailure] = useState<unknown>()
  const [said, setSaid] = useState('')
  const load = () =>
    call('GET /v1/admin/projects/{projectId}/webhooks/{webhookId}/deliveries', {
      path: { projectId, webhookId: id },
      query: { limit: 50, ...(status ? { status } : {}) },
    })
  const { value, error, again } = usePolled(`deliveries ${id} ${status}`, load, 3)
  const replay = async (deliveryId: string) => {
    setFailure(undefined)
    try {
      await call('POST /v1/admin/projects/{projectId}/webhooks/deliveries/{deliveryId}/replay', {
        path: { projectId, deliveryId },
      })
      setSaid(texts.replayed)
    } catch (reason) {
      setFailure(reason)
    }
    again()
  }
  const rows = (value?.data ?? []) as readonly Delivery[]
  return (
    <>
      <h1>{texts.deliveries}</h1>
      <ChoiceField label={texts.status} value={status} onValue={setStatus}>
        <option value="">{texts.all}</option>
        {['pending', 'delivered', 'failed', 'dlq'].map((one) => (
          <option key={one} value={one}>
            {one}
          </option>
        ))}
      </ChoiceField>
      <Refusal error={failure ?? error} />
      <p role="status">{said}</p>
      {value && rows.length === 0 && <p>{texts.nothing}</p>}
      {rows.length > 0 && (
        <Table label={texts.deliveries} columns={texts.deliveryColumns}>
          {rows.map((delivery) => (
            <tr key={delivery.id}>
              <td>{timeOf(delivery.created_at)}</td>
              <td>{delivery.event_name}</td>
              <td>{delivery.status}</td>
              <td>
                <Attempts delivery={delivery} />
              </td>
              <td>
                {['failed', 'dlq'].includes(delivery.status) && (
                  <button type="button" onClick={() => replay(delivery.id)}>
                    {texts.replay}
                  </button>
                )}
              </td>
            </tr>
          ))}
        </Table>
      )}
    </>
  )
}
