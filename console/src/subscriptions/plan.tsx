import { Alert, Button, Skeleton, Stack, Text } from '@mantine/core'
import { PlugZap } from 'lucide-react'
import { useState } from 'react'
import { callAny, type Row, TrellisError } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { PageHead, ProjectLink, useAddress, useProject } from '../parts/page.tsx'
import { counted, Failure } from '../parts/states.tsx'
import { useAnswer } from '../parts/stats.tsx'
import { base, type Plan } from './plan_data.ts'
import { Declared, DriftCard, Notes, Ops } from './plan_parts.tsx'
import { Running } from './running.tsx'
import { type Declaration, definitions } from './words.ts'

const gone = ['archive', 'detach']

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
                    <DriftCard drift={plan.drift} />
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
