import { Alert, Skeleton, Stack } from '@mantine/core'
import { CircleCheck, ShieldCheck, TriangleAlert } from 'lucide-react'
import { Figure } from '../parts/chart.tsx'
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
        <table className="table" data-stack aria-label="What differs">
          <thead>
            <tr>
              <th scope="col">User</th>
              <th scope="col">Currency</th>
              <th scope="col" data-number>
                Balance
              </th>
              <th scope="col" data-number>
                Sum of the ledger
              </th>
            </tr>
          </thead>
          <tbody>
            {check.mismatches.map((one) => (
              <tr key={`${one.app_user_id} ${one.currency_code}`}>
                <td>
                  <UserName id={one.app_user_id} />
                </td>
                <td data-label="Currency" className="mono">
                  {one.currency_code}
                </td>
                <td data-number data-label="Balance">
                  {count(one.balance)}
                </td>
                <td data-number data-label="Sum of the ledger">
                  {count(one.ledger)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
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
