import { Group, Skeleton, Stack } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { RefreshCw } from 'lucide-react'
import { getSyncStats } from '../../../sdk/src/generated/admin.ts'
import type { Client } from '../../../sdk/src/generated/schemas.ts'
import { call } from '../api.ts'
import { Figure } from '../parts/chart.tsx'
import { List, ShortTable } from '../parts/list.tsx'
import { Card, PageHead, useAddress, useProject } from '../parts/page.tsx'
import { ago, count, Empty, Failure, When } from '../parts/states.tsx'
import { Id } from '../parts/status.tsx'
import { UserName, UserSelect } from '../parts/users.tsx'

/** More than a minute is an open transaction that somebody should look at. */
const lagOf = (seconds: number): string =>
  seconds < 120 ? `${count(seconds)} s` : `${count(Math.round(seconds / 60))} min`

/** The usual refusals of a write in words; any other is shown by its code. */
const reasons: Readonly<Record<string, string>> = {
  CONFLICT: 'A unique value is taken',
  FORBIDDEN: 'The user may not write there',
  INVALID_COLUMN: 'The collection has no such column, or users may not set it',
  GROUP_CONTEXT_REQUIRED: 'The group of the row is not named',
  GROUP_ROLE_FORBIDDEN: 'The role in the group does not allow it',
  NOT_A_GROUP_MEMBER: 'The user is not in the group',
  NOT_FOUND: 'The row does not exist, or the user cannot see it',
  TRANSACTION_ROLLED_BACK: 'Another write of the same transaction was rejected',
  VALIDATION_ERROR: 'A value does not fit its column',
}

/** How devices sync: what holds them back, what the server has refused them, and who they are. */
export const Page = () => {
  const { path } = useProject()
  const [{ user_id }, setAddress] = useAddress<'user_id'>()
  const { data, error, refetch } = useQuery({
    queryKey: ['sync stats', path.projectId],
    queryFn: () => call(getSyncStats, { path }),
    refetchInterval: 30_000,
  })
  const stats = data?.data
  const rejected = Object.entries(stats?.rejected_24h ?? {})
    .map(([code, times]) => ({ code, times }))
    .sort((a, b) => b.times - a.times || a.code.localeCompare(b.code))
  return (
    <>
      <PageHead title="Sync" about="Devices that keep rows of collections, and write them without a network" />
      <Stack gap="md">
        {error && <Failure error={error} onRetry={refetch} />}
        {stats ? (
          <div className="cards">
            <Figure title="Lag" value={lagOf(stats.lag_seconds)} about="age of what an open transaction holds back" />
            <Figure
              title="Rejected writes"
              value={count(rejected.reduce((sum, { times }) => sum + times, 0))}
              about="in the last 24 hours"
            />
            <Figure
              title="Changes kept"
              value={count(stats.change_log_rows)}
              about={stats.oldest ? `oldest: ${ago(stats.oldest)}` : 'for devices that come back'}
            />
          </div>
        ) : (
          !error && <Skeleton h={98} />
        )}
        {rejected.length > 0 && (
          <Card title="Why writes were rejected" flush>
            <ShortTable
              name="Codes"
              rows={rejected}
              keyOf={({ code }) => code}
              columns={[
                {
                  title: 'Why',
                  show: ({ code }) => (
                    <span>
                      {reasons[code] ?? <code>{code}</code>}
                      {reasons[code] && <span className="cell-sub mono">{code}</span>}
                    </span>
                  ),
                },
                { title: 'Writes', isNumber: true, show: ({ times }) => count(times) },
              ]}
            />
          </Card>
        )}
        <Group>
          <UserSelect value={user_id} onChange={(next) => setAddress({ user_id: next })} placeholder="All users" />
        </Group>
        <List<Client>
          name="Clients"
          operation="GET /v1/admin/projects/{projectId}/sync/clients"
          query={{ user_id }}
          keyOf={({ user_id: user, client_id }) => `${user} ${client_id}`}
          columns={[
            { title: 'User', show: ({ user_id: user }) => <UserName id={user} /> },
            { title: 'Client', show: ({ client_id }) => <Id value={client_id} /> },
            { title: 'Last pull', show: ({ last_pull_at }) => <When at={last_pull_at} none="never" /> },
            { title: 'Last push', show: ({ last_push_at }) => <When at={last_push_at} none="never" /> },
            { title: 'First seen', show: ({ created_at }) => <When at={created_at} /> },
          ]}
          empty={
            <Empty
              icon={<RefreshCw size={22} />}
              title={user_id ? 'No device of this user syncs' : 'No device syncs yet'}
            >
              Switch sync on for a collection, and apps keep its rows on the device with createSync of the SDK,
              WatermelonDB, RxDB or TanStack DB.
            </Empty>
          }
        />
      </Stack>
    </>
  )
}
