import { Button, Group, NumberInput, Progress, SegmentedControl, Skeleton, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import type { AiPromptBudget } from '../../../sdk/src/generated/schemas.ts'
import { Drawer } from '../parts/drawer.tsx'
import { Card, useProject } from '../parts/page.tsx'
import { done, Failure, useRefresh } from '../parts/states.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'
import { dollars, type Period, periodWords, putBudget, useBudget } from './data.ts'

const Form = ({ name, budget, onClose }: { name: string; budget: AiPromptBudget; onClose: () => void }) => {
  const { projectId } = useProject()
  const refresh = useRefresh()
  const [amount, setAmount] = useState<number | null>(budget.budget_usd)
  const [period, setPeriod] = useState(budget.budget_period as Period)
  const work = useMutation({
    mutationFn: () => putBudget(projectId, name, amount, period),
    onSuccess: async () => {
      done(amount === null ? 'The prompt has no limit.' : 'The budget is set.', () =>
        putBudget(projectId, name, budget.budget_usd, budget.budget_period as Period).then(refresh),
      )
      onClose()
      await refresh()
    },
  })
  useUnsaved([amount, period], work)
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        work.mutate()
      }}
    >
      <Stack gap="md">
        <NumberInput
          label="At most"
          description="Empty: no limit. Calls beyond it are refused, and the provider is not asked"
          prefix="$ "
          min={0}
          data-autofocus
          value={amount ?? ''}
          onChange={(next) => setAmount(next === '' ? null : Number(next))}
        />
        <div>
          <div className="field-label" id="budget-period">
            In which time
          </div>
          <SegmentedControl
            aria-labelledby="budget-period"
            value={period}
            onChange={(next) => setPeriod(next as Period)}
            data={Object.entries(periodWords).map(([value, label]) => ({ value, label }))}
          />
        </div>
      </Stack>
      <div className="savebar">
        {work.error && (
          <div className="grow">
            <Failure error={work.error} />
          </div>
        )}
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <Button type="submit" loading={work.isPending}>
          Save budget
        </Button>
      </div>
    </form>
  )
}

export const BudgetDrawer = ({ name, onClose }: { name: string | undefined; onClose: () => void }) => (
  <Drawer opened={name !== undefined} onClose={onClose} title={`Budget of ${name ?? ''}`} size="md">
    {name && <Loaded key={name} name={name} onClose={onClose} />}
  </Drawer>
)
const Loaded = ({ name, onClose }: { name: string; onClose: () => void }) => {
  const { data, error, refetch } = useBudget(name)
  if (error) return <Failure error={error} onRetry={refetch} />
  return data ? <Form name={name} budget={data} onClose={onClose} /> : <Skeleton h={160} />
}

/** How much of its budget a prompt has used. */
export const BudgetCard = ({ name, onEdit }: { name: string; onEdit: () => void }) => {
  const { data } = useBudget(name)
  const share = data?.budget_usd ? Math.min(100, (data.period_spend_usd / data.budget_usd) * 100) : 0
  return (
    <Card
      title="Budget"
      actions={
        <Button size="compact-xs" variant="default" onClick={onEdit}>
          {data?.budget_usd === null ? 'Set a budget' : 'Change'}
        </Button>
      }
    >
      {data ? (
        <Stack gap={6}>
          <Group justify="space-between">
            <Text size="sm">{dollars(data.period_spend_usd)} spent</Text>
            <Text size="sm" c="dimmed">
              {data.budget_usd === null
                ? 'no limit'
                : `of ${dollars(data.budget_usd)} ${periodWords[data.budget_period]}`}
            </Text>
          </Group>
          {data.budget_usd !== null && (
            <Progress
              value={share}
              {...(share > 90 ? { color: 'red' } : {})}
              aria-label={`${Math.round(share)} % of the budget`}
            />
          )}
        </Stack>
      ) : (
        <Skeleton h={36} />
      )}
    </Card>
  )
}
