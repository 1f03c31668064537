import { Alert, Button, Group, Skeleton, Stack, Text } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { CircleCheck, PlugZap, TriangleAlert } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { callAny, type Row, TrellisError } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { wordsOf } from '../parts/form/schema.ts'
import { Card, Facts, PageHead, ProjectLink, useAddress, useOpen, useProject } from '../parts/page.tsx'
import { counted, Empty, Failure, useRefresh } from '../parts/states.tsx'
import { useAnswer } from '../parts/stats.tsx'
import { Status } from '../parts/status.tsx'
import { type Declaration, definitions, storeWords } from './words.ts'

const base = '/v1/admin/projects/{projectId}/monetization'
type Op = {
  readonly op: string
  readonly object_type: string
  readonly identifier: string
  readonly status: string
  readonly reason: string
}
type Note = { readonly title?: string; readonly detail: string; readonly code: string; readonly identifier?: string }
type Drift = {
  readonly object_type: string
  readonly identifier: string
  readonly last_applied_hash: string | null
  readonly live_hash: string | null
}
type Plan = {
  readonly plan_hash: string
  readonly clean: boolean
  readonly ops: readonly Op[]
  readonly store_floor: readonly Note[]
  readonly human_floor: readonly Note[]
  readonly drift: readonly Drift[]
  readonly validation: readonly Note[]
}
const gone = ['archive', 'detach']

const driftWords = ({ last_applied_hash, live_hash }: Drift) =>
  live_hash === null ? 'gone at the provider' : last_applied_hash === null ? 'managed by nobody' : 'changed there'

const Notes = ({ title, notes }: { title: string; notes: readonly Note[] }) =>
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

/** The apply that runs: what it does, and what waits for a yes. */
const Running = ({ hash }: { hash: string | undefined }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const [{ operation }, setAddress] = useAddress<'operation'>()
  const { data } = useQuery({
    queryKey: ['operation', path.projectId, operation],
    enabled: operation !== undefined,
    refetchInterval: ({ state }) =>
      ['succeeded', 'failed', 'cancelled'].includes(String((state.data as Row | undefined)?.['status'])) ? false : 1500,
    queryFn: async () =>
      (
        await callAny('GET /v1/admin/projects/{projectId}/operations/{operationId}', {
          path: { ...path, operationId: operation },
        })
      ).data as Row,
  })
  const confirm = useMutation({
    mutationFn: () =>
      callAny(`POST ${base}/apply`, {
        path,
        body: { plan_hash: data?.['plan_hash'] ?? hash, confirm: data?.['plan_hash'] ?? hash },
      }),
    onSuccess: refresh,
  })
  if (!operation || !data) return null
  const status = String(data['status'])
  return (
    <Alert
      color={status === 'failed' ? 'red' : status === 'succeeded' ? 'leaf' : 'yellow'}
      title={
        <Group gap="xs">
          The apply <Status value={status} />
        </Group>
      }
      withCloseButton={!['queued', 'running'].includes(status)}
      closeButtonLabel="Close"
      onClose={() => setAddress({ operation: undefined })}
      role="status"
    >
      {data['failed_reason'] ? <Text size="sm">{String(data['failed_reason'])}</Text> : null}
      {data['confirm_required'] === true && (
        <Group justify="space-between">
          <Text size="sm">What is archived or detached, or made in a store, waits for your yes.</Text>
          <Button size="xs" color="red.8" loading={confirm.isPending} onClick={() => confirm.mutate()}>
            Go on with it
          </Button>
        </Group>
      )}
      {confirm.error && <Failure error={confirm.error} />}
    </Alert>
  )
}

const Ops = ({ plan, apply }: { plan: Plan; apply: ReactNode }) => (
  <Card title="Plan" flush actions={plan.clean ? undefined : apply}>
    {plan.clean ? (
      <Empty icon={<CircleCheck size={22} />} title="The provider has what you declared">
        There is nothing to do.
      </Empty>
    ) : (
      <table className="table" data-stack aria-label="Plan">
        <thead>
          <tr>
            <th scope="col">What</th>
            <th scope="col">Why</th>
            <th scope="col">Because of</th>
          </tr>
        </thead>
        <tbody>
          {plan.ops.map((op) => (
            <tr key={`${op.op} ${op.object_type} ${op.identifier}`}>
              <td>
                {wordsOf(op.op)} {op.object_type.replace(/_/g, ' ')}
                <span className="cell-sub mono">{op.identifier}</span>
              </td>
              <td data-label="Why">{op.reason}</td>
              <td data-label="Because of">
                <Status value={op.status === 'drift' ? 'changed there' : 'declared here'} meaning="none" />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    )}
  </Card>
)

const Declared = ({ declaration }: { declaration: Declaration }) => {
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

/** What is declared, what the provider has, and the way from one to the other. */
export const Page = () => {
  const { path } = useProject()
  const [, setAddress] = useAddress<'operation'>()
  const [asked, setAsked] = useState<'apply' | 'adopt'>()
  const declared = useAnswer<{ monetization: Declaration }>(definitions)
  const { data: plan, error, refetch, isPending } = useAnswer<Plan>(`GET ${base}/plan`)
  const isAbsent = error instanceof TrellisError && error.code === 'MONETIZATION_NOT_CONFIGURED'
  const removed = plan?.ops.filter(({ op }) => gone.includes(op)).length ?? 0
  return (
    <>
      <PageHead
        title="Plan and drift"
        about="What you declare, what your subscription provider has, and the way from one to the other"
        actions={
          plan && (
            <Button variant="default" onClick={() => setAsked('adopt')}>
              Adopt what is there
            </Button>
          )
        }
      />
      <Stack gap="md">
        {isAbsent && (
          <Alert color="yellow" icon={<PlugZap size={18} />} title="No subscription provider is connected">
            <Text size="sm" className="links">
              Connect RevenueCat, with a key that reads and the id of its project, in the{' '}
              <ProjectLink to="settings/integrations">integrations</ProjectLink>. What you sell can be declared before.
            </Text>
          </Alert>
        )}
        {error && !isAbsent && <Failure error={error} onRetry={refetch} />}
        <Running hash={plan?.plan_hash} />
        {plan && (
          <>
            <Notes title="The declaration is not right yet" notes={plan.validation} />
            <Notes title="A store does not allow it yet" notes={plan.store_floor} />
            <Notes title="To be done by hand in a store" notes={plan.human_floor} />
          </>
        )}
        <div className={isAbsent ? 'narrow' : 'split'}>
          {!isAbsent && (
            <div className="column">
              {isPending ? (
                <Skeleton h={240} />
              ) : (
                plan && (
                  <>
                    <Ops
                      plan={plan}
                      apply={
                        <Button size="xs" onClick={() => setAsked('apply')}>
                          Apply the plan
                        </Button>
                      }
                    />
                    <Card title="Drift" flush={plan.drift.length > 0}>
                      {plan.drift.length === 0 ? (
                        <Text size="sm" c="dimmed">
                          Nothing changed at the provider since the last apply.
                        </Text>
                      ) : (
                        <table className="table" data-stack aria-label="Drift">
                          <tbody>
                            {plan.drift.map((one) => (
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
                  </>
                )
              )}
            </div>
          )}
          {declared.error ? (
            <Failure error={declared.error} onRetry={declared.refetch} />
          ) : declared.data ? (
            <Declared declaration={declared.data.monetization} />
          ) : (
            <Skeleton h={160} />
          )}
        </div>
      </Stack>
      <Confirm
        title="Apply the plan"
        verb="Apply the plan"
        said="The plan is being applied."
        isOpen={asked === 'apply'}
        isDangerous={removed > 0}
        onClose={() => setAsked(undefined)}
        run={async () => {
          const { data } = await callAny(`POST ${base}/apply`, { path, body: { plan_hash: plan?.plan_hash } })
          await setAddress({ operation: String((data as Row)['operation_id']) })
        }}
      >
        {counted(plan?.ops.length ?? 0, 'change')} at the provider.
        {removed > 0 && ` ${counted(removed, 'thing')} would be archived or detached; that waits for a second yes.`}
      </Confirm>
      <Confirm
        title="Adopt what is there"
        verb="Adopt all of it"
        said="What the provider has is declared."
        isOpen={asked === 'adopt'}
        isDangerous={false}
        onClose={() => setAsked(undefined)}
        run={() => callAny(`POST ${base}/adopt`, { path, body: { adopt_all: true } })}
      >
        What the provider has becomes what you declare. Nothing changes at the provider.
      </Confirm>
    </>
  )
}
