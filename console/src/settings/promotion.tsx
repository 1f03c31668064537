import { Alert, Button, Group, Select, Stack, Switch, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { ArrowRight } from 'lucide-react'
import { useState } from 'react'
import { callAny } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { wordsOf } from '../parts/form/schema.ts'
import { Card, PageHead, useProject } from '../parts/page.tsx'
import { counted, Empty, Failure } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { useProjects } from '../shell/shell.tsx'

type Step = {
  readonly op: 'create' | 'update' | 'delete'
  readonly kind: string
  readonly key: string
  readonly diff: object
}
type Blocked = { readonly kind: string; readonly key: string; readonly reason: string }
type Plan = { readonly plan_hash: string; readonly ops: readonly Step[]; readonly blocked: readonly Blocked[] }
const meanings = { create: 'good', update: 'warn', delete: 'bad' } as const
const changed = ({ op, diff }: Step) => (op === 'update' ? Object.keys(diff).join(', ').replace(/_/g, ' ') : '')

/** Copies the definitions of this project to another one, after showing what would change there. */
export const Page = () => {
  const { path } = useProject()
  const projects = useProjects().data?.data.filter(({ id }) => id !== path.projectId) ?? []
  const [target, setTarget] = useState<string>()
  const [prune, setPrune] = useState(false)
  const [isAsked, setAsked] = useState(false)
  const body = { target_project_id: target, prune }
  const plan = useMutation({
    mutationFn: async () =>
      (await callAny('POST /v1/admin/projects/{projectId}/promotion/plan', { path, body })).data as Plan,
  })
  const steps = plan.data?.ops ?? []
  const blocked = plan.data?.blocked ?? []
  const hash = plan.data?.plan_hash
  const name = projects.find(({ id }) => id === target)?.name
  return (
    <>
      <PageHead
        title="Promotion"
        about="Copies definitions of this project to another one, such as from staging to production"
      />
      <Stack className="narrow">
        <Card title="Where to">
          <Group align="flex-end">
            <Select
              label="Project"
              flex={1}
              placeholder={projects.length === 0 ? 'There is no other project' : 'Choose one'}
              data={projects.map(({ id, name: label }) => ({ value: id, label }))}
              value={target ?? null}
              onChange={(next) => {
                setTarget(next ?? undefined)
                plan.reset()
              }}
            />
            <Button disabled={!target} loading={plan.isPending} onClick={() => plan.mutate()}>
              Compare
            </Button>
          </Group>
          <Switch
            mt="sm"
            label="Delete what is only there"
            checked={prune}
            onChange={(event) => {
              setPrune(event.currentTarget.checked)
              plan.reset()
            }}
          />
        </Card>
        {plan.error && <Failure error={plan.error} onRetry={() => plan.mutate()} />}
        {blocked.length > 0 && (
          <Alert color="yellow" title="Not these">
            {blocked.map(({ kind, key, reason }) => (
              <Text key={`${kind} ${key}`} size="sm">
                {wordsOf(kind)} {key}: {reason}
              </Text>
            ))}
          </Alert>
        )}
        {plan.data && (
          <Card
            title={steps.length === 0 ? 'Both are alike' : `${counted(steps.length, 'change')} in ${name}`}
            actions={
              steps.length > 0 && (
                <Button leftSection={<ArrowRight size={16} />} onClick={() => setAsked(true)}>
                  Apply
                </Button>
              )
            }
            flush
          >
            {steps.length === 0 ? (
              <Empty title="Nothing to copy" />
            ) : (
              <table className="table" aria-label="Changes">
                <thead>
                  <tr>
                    <th scope="col">What</th>
                    <th scope="col">Kind</th>
                    <th scope="col">Change</th>
                  </tr>
                </thead>
                <tbody>
                  {steps.map((step) => (
                    <tr key={`${step.kind} ${step.key}`}>
                      <td>
                        {step.key}
                        <span className="cell-sub">{changed(step)}</span>
                      </td>
                      <td>{wordsOf(step.kind)}</td>
                      <td>
                        <Status value={step.op} meaning={meanings[step.op]} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
          </Card>
        )}
      </Stack>
      <Confirm
        title="Apply the changes"
        verb="Apply"
        said={`${name} has the definitions of this project.`}
        isOpen={isAsked}
        isDangerous={prune}
        onClose={() => setAsked(false)}
        run={() =>
          callAny('POST /v1/admin/projects/{projectId}/promotion/apply', {
            path,
            body: { plan_hash: hash, confirm: hash },
          })
        }
        after={() => plan.reset()}
      >
        <Text size="sm">
          {counted(steps.length, 'definition')} of {name} change at once. Users and their data stay as they are.
        </Text>
      </Confirm>
    </>
  )
}
