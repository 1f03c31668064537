import { Button, Code, Skeleton, Stack, Text } from '@mantine/core'
import type { Issue, Report } from '../../../sdk/src/generated/schemas.ts'
import { callAny } from '../api.ts'
import { Bars, Chart } from '../parts/chart.tsx'
import { Card, Facts, PageHead, useParam, useProject } from '../parts/page.tsx'
import { count, counted, done, Failure, failed, useRefresh, When } from '../parts/states.tsx'
import { useAnswer } from '../parts/stats.tsx'
import { Status } from '../parts/status.tsx'
import { UserName } from '../parts/users.tsx'
import { daysOf, meaningOf } from './data.ts'
import { StackCard } from './stack.tsx'

const base = '/v1/admin/projects/{projectId}/diagnostics/issues/{issueId}'
const said = { open: 'The issue is open.', resolved: 'Resolved, until a newer version has it.', ignored: 'Ignored.' }

const Actions = ({ issue }: { issue: Issue }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const set = async (status: string) => {
    await callAny(`PATCH ${base}`, { path: { ...path, issueId: issue.id }, body: { status } })
    await refresh()
  }
  const button = (status: keyof typeof said, verb: string) => (
    <Button
      variant={status === 'resolved' ? 'filled' : 'default'}
      onClick={() => set(status).then(() => done(said[status], () => set(issue.status)), failed)}
    >
      {verb}
    </Button>
  )
  return (
    <>
      {issue.status !== 'open' && button('open', 'Open again')}
      {issue.status !== 'ignored' && button('ignored', 'Ignore')}
      {issue.status !== 'resolved' && button('resolved', 'Resolve')}
    </>
  )
}

type Before = { readonly id: string; readonly event_name: string; readonly occurred_at: string }

const EventsBefore = ({ report }: { report: Report }) => {
  const { data, error, refetch } = useAnswer<readonly Before[]>(
    'GET /v1/admin/projects/{projectId}/events',
    {},
    { user_id: report.app_user_id ?? undefined, until: report.occurred_at, limit: 10 },
  )
  return (
    <Card title="What the user did before">
      {error && <Failure error={error} onRetry={refetch} />}
      {!data && !error && <Skeleton h={80} />}
      {data?.length === 0 && (
        <Text size="sm" c="dimmed">
          No events before it.
        </Text>
      )}
      {data && data.length > 0 && (
        <Facts
          facts={data.map(({ id, event_name, occurred_at }) => [event_name, <When key={id} at={occurred_at} />])}
        />
      )}
    </Card>
  )
}

const isFlat = (context: object): boolean => Object.values(context).every((value) => typeof value !== 'object')

const Newest = ({ report, issueId }: { report: Report; issueId: string }) => (
  <>
    <div className="pair">
      <Card title="Newest report">
        <Facts
          facts={[
            ['Happened', <When key="at" at={report.occurred_at} />],
            ['Kind', report.kind],
            ['User', report.app_user_id ? <UserName key="user" id={report.app_user_id} /> : 'nobody signed in'],
            ['App', report.app_version],
            ['System', report.os_version],
            ['Device', report.device_model],
          ]}
        />
      </Card>
      {report.app_user_id && <EventsBefore report={report} />}
    </div>
    <StackCard report={report} issueId={issueId} />
    {report.context && (
      <Card title="Context">
        {isFlat(report.context) ? (
          <Facts facts={Object.entries(report.context).map(([name, value]) => [name, String(value)])} />
        ) : (
          <Code block tabIndex={0} data-code>
            {JSON.stringify(report.context, null, 2)}
          </Code>
        )}
      </Card>
    )}
  </>
)

/** One issue: how often and where it happens, its newest stack, and what its user did before. */
export const Page = () => {
  const issueId = useParam('id')
  const { data: issue, error, refetch } = useAnswer<Issue>(`GET ${base}`, { issueId })
  const { data: reports } = useAnswer<readonly Report[]>(`GET ${base}/reports`, { issueId }, { limit: 1 })
  const back = { title: 'Diagnostics', to: 'diagnostics' }
  if (!issue)
    return (
      <>
        <PageHead title="Issue" back={back} />
        {error ? <Failure error={error} onRetry={refetch} /> : <Skeleton h={320} />}
      </>
    )
  const [newest] = reports ?? []
  return (
    <>
      <PageHead
        title={issue.title}
        back={back}
        about={
          <>
            <Status value={issue.level} meaning={meaningOf(issue.level)} />{' '}
            <Status value={issue.status} meaning="none" /> {counted(issue.count, 'report')} of{' '}
            {counted(issue.users, 'user')}, since <When at={issue.first_seen} />
          </>
        }
        actions={<Actions issue={issue} />}
      />
      <Stack gap="md">
        <div className="pair">
          <Chart title="Reports each day" kind="bar" points={daysOf(issue)} />
          <Bars
            title="By version"
            of="Reports"
            by="Version"
            bars={issue.app_versions.slice(-12).map((label) => ({ label, value: issue.version_counts[label] ?? 0 }))}
          />
        </div>
        {newest ? (
          <Newest report={newest} issueId={issue.id} />
        ) : (
          <Text size="sm" c="dimmed">
            {reports ? `Its ${count(issue.count)} reports are older than 30 days.` : ''}
          </Text>
        )}
      </Stack>
    </>
  )
}
