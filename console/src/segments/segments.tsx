import { Button } from '@mantine/core'
import { Plus, Shapes } from 'lucide-react'
import type { Segment } from '../../../sdk/src/generated/schemas.ts'
import { List } from '../parts/list.tsx'
import { PageHead, ProjectLink, useOpen } from '../parts/page.tsx'
import { count, Empty, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { RuleWords } from './words.tsx'

/** Every segment of the project. */
export const Page = () => {
  const open = useOpen()
  const make = (
    <Button leftSection={<Plus size={16} />} onClick={() => open('segments/new')}>
      New segment
    </Button>
  )
  return (
    <>
      <PageHead title="Segments" about="Users who meet conditions, or whom you chose" actions={make} />
      <List<Segment>
        name="Segments"
        operation="GET /v1/admin/projects/{projectId}/segments"
        every={30_000}
        to={({ id }) => `segments/${id}`}
        columns={[
          {
            title: 'Name',
            show: (segment) => (
              <>
                <ProjectLink to={`segments/${segment.id}`}>{segment.name}</ProjectLink>
                <span className="cell-sub mono">{segment.key}</span>
              </>
            ),
          },
          {
            title: 'Who belongs',
            show: (segment) => (segment.kind === 'static' ? 'chosen by hand' : <RuleWords rules={segment.rules} />),
          },
          { title: 'Users', isNumber: true, show: (segment) => count(segment.member_count) },
          { title: 'Counted', show: (segment) => <When at={segment.last_evaluated_at} none="not yet" /> },
          {
            title: 'Status',
            show: (segment) => <Status value={segment.is_active ? 'active' : 'off'} />,
          },
        ]}
        empty={
          <Empty icon={<Shapes size={22} />} title="No segments yet" action={make}>
            A segment holds the users who meet conditions, such as everybody on the plan pro who did nothing for a week.
            Flags, messages and challenges can be for one.
          </Empty>
        }
      />
    </>
  )
}
