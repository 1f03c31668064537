import { Alert, Skeleton, Stack } from '@mantine/core'
import { CircleCheck, ShieldCheck, TriangleAlert } from 'lucide-react'
import { Figure } from '../parts/chart.tsx'
import { ShortTable } from '../parts/list.tsx'
import { Card, PageHead } from '../parts/page.tsx'
import { ago, count, counted, Empty, Failure } from '../parts/states.tsx'
import { useAnswer } from '../parts/stats.tsx'
import { UserName } from '../parts/users.tsx'

type Integrity = {
  readonly checked_at: string
  readonly ok: boolean
  readonly balances: number
  readonly mismatched: number
  readonly mismatches: readonly {
    readonly app_user_id: string
    readonly currency_code: string
    readonly balance: number
    readonly ledger: number
  }[]
}

const Found = ({ check }: { check: Integrity }) => (
  <Stack gap="md">
    <Alert
      color={check.ok ? 'leaf' : 'red'}
      icon={check.ok ? <CircleCheck size={18} /> : <TriangleAlert size={18} />}
      title={check.ok ? 'Every balance is the sum of its ledger' : `${counted(check.mismatched, 'balance')} differ`}
    >
      Checked {ago(check.checked_at)}; it is checked every night.
    </Alert>
    <div className="cards">
      <Figure title="Balances checked" value={count(check.balances)} />
      <Figure title="Balances that differ" value={count(check.mismatched)} />
    </div>
    {check.mismatches.length > 0 && (
      <Card title="What differs" flush>
        <ShortTable
          name="What differs"
          rows={check.mismatches}
          keyOf={(one) => `${one.app_user_id} ${one.currency_code}`}
          columns={[
            { title: 'User', show: (one) => <UserName id={one.app_user_id} /> },
            { title: 'Currency', show: (one) => <span className="mono">{one.currency_code}</span> },
            { title: 'Balance', isNumber: true, show: (one) => count(one.balance) },
            { title: 'Sum of the ledger', isNumber: true, show: (one) => count(one.ledger) },
          ]}
        />
      </Card>
    )}
  </Stack>
)

/** Whether every balance is the sum of its ledger. */
export const Page = () => {
  const { data, error, refetch, isPending } = useAnswer<Integrity | null>(
    'GET /v1/admin/projects/{projectId}/currencies/integrity',
  )
  return (
    <>
      <PageHead title="Integrity" about="Whether every balance is the sum of its ledger" />
      {error ? (
        <Failure error={error} onRetry={refetch} />
      ) : isPending ? (
        <Skeleton h={160} />
      ) : data ? (
        <Found check={data} />
      ) : (
        <div className="card">
          <Empty icon={<ShieldCheck size={22} />} title="Not checked yet">
            The first check runs in the coming night, and then every night.
          </Empty>
        </div>
      )}
    </>
  )
}
