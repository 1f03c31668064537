import { Button, Group, Progress, Skeleton, Text } from '@mantine/core'
import { CircleDollarSign } from 'lucide-react'
import { useState } from 'react'
import { useBilling } from '../parts/billing.ts'
import { List } from '../parts/list.tsx'
import { PageHead, ProjectLink, useAddress, useProject } from '../parts/page.tsx'
import { SpendingLimit } from '../parts/spending_limit.tsx'
import { Empty, Failure } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { BudgetDrawer } from './budget.tsx'
import { dollars, type Period, type Prompt, periodWords, useBudget, useSpend } from './data.ts'

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

/** What calls cost, and what they may cost. */
export const Page = () => {
  const [{ budget }, setAddress] = useAddress<'budget'>()
  const [isOpen, setOpen] = useState(false)
  const { data: billing, error, refetch } = useBilling()
  const { projectId } = useProject()
  const used = billing?.usage.ai_spend_usd.used ?? 0
  const limit = billing?.spend_ceiling_usd ?? null
  return (
    <>
      <PageHead
        title="Spend"
        about="What calls cost this month, and what they may cost"
        actions={
          <Button variant="default" disabled={!billing} onClick={() => setOpen(true)}>
            Set a spending limit
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
              {limit === null ? 'no limit for the project' : `of at most ${dollars(limit)}`}
            </Text>
          </Group>
          {limit !== null && (
            <Progress
              mt="sm"
              value={limit === 0 ? 100 : Math.min(100, (used / limit) * 100)}
              aria-label={`${dollars(used)} of ${dollars(limit)}`}
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
      <SpendingLimit projectId={projectId} limit={limit} isOpen={isOpen} onClose={() => setOpen(false)} />
    </>
  )
}
