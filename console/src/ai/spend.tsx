import { Button, Group, NumberInput, Progress, Skeleton, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { CircleDollarSign } from 'lucide-react'
import { useState } from 'react'
import { setSpendCeiling } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { Dialog } from '../parts/drawer.tsx'
import { List } from '../parts/list.tsx'
import { PageHead, ProjectLink, useAddress, useProject } from '../parts/page.tsx'
import { done, Empty, Failure, useRefresh } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'
import { BudgetDrawer } from './budget.tsx'
import { dollars, type Period, type Prompt, periodWords, useBilling, useBudget, useSpend } from './data.ts'

const Spent = ({ name, period }: { name: string; period: Period }) => {
  const { data } = useSpend(name, period)
  return <>{data ? dollars(data.spend_usd) : '…'}</>
}
const Budget = ({ name, onEdit }: { name: string; onEdit: () => void }) => {
  const { data } = useBudget(name)
  if (!data) return <>…</>
  return (
    <Group gap="xs" wrap="nowrap">
      <span>
        {data.budget_usd === null ? 'no limit' : `${dollars(data.budget_usd)} ${periodWords[data.budget_period]}`}
      </span>
      {data.exceeded && <Status value="used up" meaning="bad" />}
      <Button
        size="compact-xs"
        variant="default"
        aria-label={`${data.budget_usd === null ? 'Set' : 'Change'} the budget of ${name}`}
        onClick={onEdit}
      >
        {data.budget_usd === null ? 'Set' : 'Change'}
      </Button>
    </Group>
  )
}

const CeilingForm = ({ ceiling, onClose }: { ceiling: number | null; onClose: () => void }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const [amount, setAmount] = useState<number | null>(ceiling)
  const put = (amount_usd: number | null) => call(setSpendCeiling, { path, body: { amount_usd } })
  const work = useMutation({
    mutationFn: () => put(amount),
    onSuccess: async () => {
      done(amount === null ? 'The project has no ceiling.' : 'The ceiling is set.', () => put(ceiling).then(refresh))
      onClose()
      await refresh()
    },
  })
  useUnsaved(amount, work)
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        work.mutate()
      }}
    >
      <Stack gap="sm">
        <NumberInput
          label="All calls of a month, at most"
          description="Empty: no ceiling. Beyond it every call is refused, whichever prompt it asks"
          prefix="$ "
          min={0}
          data-autofocus
          value={amount ?? ''}
          onChange={(next) => setAmount(next === '' ? null : Number(next))}
        />
        {work.error && <Failure error={work.error} />}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={work.isPending}>
            Save ceiling
          </Button>
        </Group>
      </Stack>
    </form>
  )
}

/** What calls cost, and what they may cost. */
export const Page = () => {
  const [{ budget }, setAddress] = useAddress<'budget'>()
  const [isOpen, setOpen] = useState(false)
  const { data, error, refetch } = useBilling()
  const billing = data as { spend_ceiling_usd: number | null; usage: { ai_spend_usd?: { used: number } } } | undefined
  const used = billing?.usage.ai_spend_usd?.used ?? 0
  const ceiling = billing?.spend_ceiling_usd ?? null
  return (
    <>
      <PageHead
        title="Spend"
        about="What calls cost this month, and what they may cost"
        actions={
          <Button variant="default" onClick={() => setOpen(true)}>
            {ceiling === null ? 'Set a ceiling' : 'Change the ceiling'}
          </Button>
        }
      />
      {error && <Failure error={error} onRetry={refetch} />}
      {billing ? (
        <section className="card" aria-label="This month">
          <Group justify="space-between">
            <div>
              <Text size="sm" c="dimmed">
                This month
              </Text>
              <Text fz={26} fw={600} lh={1.25}>
                {dollars(used)}
              </Text>
            </div>
            <Text size="sm" c="dimmed">
              {ceiling === null ? 'no ceiling for the project' : `of at most ${dollars(ceiling)}`}
            </Text>
          </Group>
          {ceiling !== null && (
            <Progress
              mt="sm"
              value={ceiling === 0 ? 100 : Math.min(100, (used / ceiling) * 100)}
              aria-label={`${dollars(used)} of ${dollars(ceiling)}`}
            />
          )}
        </section>
      ) : (
        !error && <Skeleton h={90} />
      )}
      <div className="after">
        <List<Prompt>
          name="Spend of prompts"
          operation="GET /v1/admin/projects/{projectId}/ai/prompts"
          keyOf={({ name }) => name}
          columns={[
            { title: 'Prompt', show: ({ name }) => <ProjectLink to={`ai/prompts/${name}`}>{name}</ProjectLink> },
            { title: 'Today', isNumber: true, show: ({ name }) => <Spent name={name} period="daily" /> },
            { title: 'This month', isNumber: true, show: ({ name }) => <Spent name={name} period="monthly" /> },
            { title: 'In all', isNumber: true, show: ({ name }) => <Spent name={name} period="total" /> },
            {
              title: 'Budget',
              show: ({ name }) => <Budget name={name} onEdit={() => setAddress({ budget: name }, false)} />,
            },
          ]}
          empty={
            <Empty icon={<CircleDollarSign size={22} />} title="No prompts yet">
              What each of them costs stands here.
            </Empty>
          }
        />
      </div>
      <BudgetDrawer name={budget} onClose={() => setAddress({ budget: undefined })} />
      <Dialog opened={isOpen} onClose={() => setOpen(false)} title="Ceiling of the project">
        {isOpen && <CeilingForm ceiling={ceiling} onClose={() => setOpen(false)} />}
      </Dialog>
    </>
  )
}
