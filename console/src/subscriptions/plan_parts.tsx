import { Alert, Button, Text } from '@mantine/core'
import { CircleCheck, TriangleAlert } from 'lucide-react'
import type { ReactNode } from 'react'
import { wordsOf } from '../parts/form/schema.ts'
import { ShortTable } from '../parts/list.tsx'
import { Card, Facts, useOpen } from '../parts/page.tsx'
import { counted, Empty } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import type { Drift, Note, Plan } from './plan_data.ts'
import { type Declaration, storeWords } from './words.ts'

const driftWords = ({ last_applied_hash, live_hash }: Drift) =>
  live_hash === null ? 'gone at the provider' : last_applied_hash === null ? 'managed by nobody' : 'changed there'

/** What stands in the way of the plan. */
export const Notes = ({ title, notes }: { title: string; notes: readonly Note[] }) =>
  notes.length === 0 ? null : (
    <Alert color="yellow" icon={<TriangleAlert size={18} />} title={title}>
      <ul className="numbered">
        {notes.map((note) => (
          <li key={`${note.code} ${note.title ?? note.identifier} ${note.detail}`}>
            {note.title ? <strong>{note.title}: </strong> : null}
            {note.detail}
          </li>
        ))}
      </ul>
    </Alert>
  )

/** What an apply would change, and why. */
export const Ops = ({ plan, apply }: { plan: Plan; apply: ReactNode }) => (
  <Card title="Plan" flush actions={plan.clean ? undefined : apply}>
    {plan.clean ? (
      <Empty icon={<CircleCheck size={22} />} title="The provider has what you declared">
        There is nothing to do.
      </Empty>
    ) : (
      <ShortTable
        name="Plan"
        rows={plan.ops}
        keyOf={(op) => `${op.op} ${op.object_type} ${op.identifier}`}
        columns={[
          {
            title: 'What',
            show: (op) => (
              <>
                {wordsOf(op.op)} {op.object_type.replace(/_/g, ' ')}
                <span className="cell-sub mono">{op.identifier}</span>
              </>
            ),
          },
          { title: 'Why', show: (op) => op.reason },
          {
            title: 'Because of',
            show: (op) => <Status value={op.status === 'drift' ? 'changed there' : 'declared here'} meaning="none" />,
          },
        ]}
      />
    )}
  </Card>
)

/** What changed at the provider since the last apply. */
export const DriftCard = ({ drift }: { drift: readonly Drift[] }) => (
  <Card title="Drift" flush={drift.length > 0}>
    {drift.length === 0 ? (
      <Text size="sm" c="dimmed">
        Nothing changed at the provider since the last apply.
      </Text>
    ) : (
      <table className="table" data-stack aria-label="Drift">
        <tbody>
          {drift.map((one) => (
            <tr key={`${one.object_type} ${one.identifier}`}>
              <th scope="row">
                {wordsOf(one.object_type)} <span className="mono">{one.identifier}</span>
              </th>
              <td>{driftWords(one)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    )}
  </Card>
)

/** What the project declares to sell. */
export const Declared = ({ declaration }: { declaration: Declaration }) => {
  const open = useOpen()
  const { products = [], entitlements = [], offerings = [], paywalls = [] } = declaration
  const edit = (
    <Button size="xs" variant="default" onClick={() => open('subscriptions/edit')}>
      Edit
    </Button>
  )
  return (
    <Card title="What is declared" actions={edit}>
      {products.length + entitlements.length + offerings.length === 0 ? (
        <Empty title="Nothing yet">Declare products, what they give, and how they are offered.</Empty>
      ) : (
        <Facts
          facts={[
            ...products.map(
              (one) => [one.display_name ?? one.key, `${storeWords(one.store)}, ${one.store_identifier}`] as const,
            ),
            ...entitlements.map((one) => [one.display_name ?? one.key, 'entitlement'] as const),
            ...offerings.map(
              (one) =>
                [
                  one.display_name ?? one.key,
                  `offering of ${counted(one.packages?.length ?? 0, 'package')}${one.is_current ? ', shown now' : ''}`,
                ] as const,
            ),
            ...paywalls.map((one) => [one.key, `paywall of ${one.offering_key}`] as const),
          ]}
        />
      )}
    </Card>
  )
}
