import { SegmentedControl } from '@mantine/core'
import { Bug } from 'lucide-react'
import type { Issue } from '../../../sdk/src/generated/schemas.ts'
import { Spark } from '../parts/chart.tsx'
import { List } from '../parts/list.tsx'
import { PageHead, ProjectLink, useAddress } from '../parts/page.tsx'
import { count, Empty, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { daysOf, meaningOf } from './data.ts'

const pathOf = ({ id }: Issue) => `diagnostics/${id}`

const Course = ({ issue }: { issue: Issue }) => {
  const values = daysOf(issue).map(({ value }) => value)
  return (
    <>
      <Spark values={values} />
      <span className="only-read">{count(values.reduce((sum, value) => sum + value, 0))}</span>
    </>
  )
}

/** What goes wrong in apps: reports with one cause are one row. */
export const Page = () => {
  const [{ status = 'open' }, setAddress] = useAddress<'status'>()
  return (
    <>
      <PageHead title="Diagnostics" about="Errors and crashes of your apps; reports with one cause are one issue" />
      <div className="scroll-x">
        <SegmentedControl
          size="xs"
          mb="sm"
          aria-label="Status"
          value={status}
          onChange={(next) => setAddress({ status: next === 'open' ? undefined : next })}
          data={[
            { value: 'open', label: 'Open' },
            { value: 'resolved', label: 'Resolved' },
            { value: 'ignored', label: 'Ignored' },
          ]}
        />
      </div>
      <List<Issue>
        name="Issues"
        operation="GET /v1/admin/projects/{projectId}/diagnostics/issues"
        query={{ status }}
        to={pathOf}
        columns={[
          {
            title: 'Issue',
            show: (issue) => (
              <>
                <ProjectLink to={pathOf(issue)}>{issue.title}</ProjectLink>
                <span className="cell-sub">
                  {issue.app_versions.length > 0 ? `in ${issue.app_versions.slice(-3).join(', ')}` : 'no version'}
                </span>
              </>
            ),
          },
          { title: 'Level', show: ({ level }) => <Status value={level} meaning={meaningOf(level)} /> },
          { title: 'Last 30 days', show: (issue) => <Course issue={issue} /> },
          { title: 'Reports', show: (issue) => count(issue.count), isNumber: true },
          { title: 'Users', show: ({ users }) => count(users), isNumber: true },
          { title: 'Last seen', show: ({ last_seen }) => <When at={last_seen} /> },
        ]}
        empty={
          <Empty icon={<Bug size={22} />} title={status === 'open' ? 'Nothing is open' : `Nothing is ${status}`}>
            What apps send to /v1/client/diagnostics/reports stands here, grouped by its cause.
          </Empty>
        }
      />
    </>
  )
}
