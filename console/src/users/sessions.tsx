import { SegmentedControl, Skeleton, Stack } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Smartphone } from 'lucide-react'
import { getAppSessionAnalytics } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { Figure } from '../parts/chart.tsx'
import { List } from '../parts/list.tsx'
import { PageHead, useAddress, useProject } from '../parts/page.tsx'
import { count, Empty, Failure } from '../parts/states.tsx'
import { UserName } from '../parts/users.tsx'
import { lasting, type Session, sessionColumns } from './session_columns.tsx'

type Anyones = Session & {
  readonly app_user_id: string
  readonly user?: { readonly display_name: string | null } | null
}
const periods = { '24h': '24 hours', '7d': '7 days', '30d': '30 days', '90d': '90 days' } as const

/** How long and how often people use the app. */
export const Page = () => {
  const { path } = useProject()
  const [{ period: chosen }, setAddress] = useAddress<'period'>()
  const period = chosen && chosen in periods ? (chosen as keyof typeof periods) : '7d'
  const { data, error, refetch } = useQuery({
    queryKey: ['sessions', path.projectId, period],
    queryFn: () => call(getAppSessionAnalytics, { path, query: { period } }),
    placeholderData: (before) => before,
  })
  const figures = data?.data
  return (
    <>
      <PageHead
        title="Sessions"
        about="How often and how long people use the app, as it tells of their sessions"
        actions={
          <SegmentedControl
            size="xs"
            aria-label="Period"
            value={period}
            onChange={(next) => setAddress({ period: next })}
            data={Object.entries(periods).map(([value, label]) => ({ value, label }))}
          />
        }
      />
      <Stack gap="md">
        {error && <Failure error={error} onRetry={refetch} />}
        {figures ? (
          <div className="cards">
            <Figure title="Active users" value={count(figures.period_active_users)} about={`in ${periods[period]}`} />
            <Figure title="Active users of today" value={count(figures.dau)} about="in the last 24 hours" />
            <Figure title="Sessions" value={count(figures.total_sessions)} about={`in ${periods[period]}`} />
            <Figure
              title="Usual length"
              value={lasting(figures.median_duration_seconds)}
              about={`${lasting(figures.avg_duration_seconds)} on average`}
            />
          </div>
        ) : (
          !error && <Skeleton h={98} />
        )}
        <List<Anyones>
          name="Sessions"
          operation="GET /v1/admin/projects/{projectId}/sessions/list"
          query={{ include: 'user' }}
          every={15_000}
          to={(session) => `users/${session.app_user_id}`}
          columns={[
            { title: 'User', show: (session) => <UserName id={session.app_user_id} user={session.user} /> },
            ...sessionColumns<Anyones>(),
          ]}
          empty={
            <Empty icon={<Smartphone size={22} />} title="No sessions yet">
              Your app begins one when it comes to the foreground, with <code>POST /v1/client/sessions/start</code>.
            </Empty>
          }
        />
      </Stack>
    </>
  )
}
