import { Button, Group, Skeleton, Stack } from '@mantine/core'
import { ListTree, Plus } from 'lucide-react'
import { Drawer } from '../parts/drawer.tsx'
import { useEventNames } from '../parts/event_names.ts'
import { List } from '../parts/list.tsx'
import { Card, PageHead, ProjectLink, useAddress } from '../parts/page.tsx'
import { RowButton } from '../parts/row_button.tsx'
import { count, Empty, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { type Definition, type Name, useDefinitions } from './definition.ts'
import { DefinitionForm } from './definition_form.tsx'

const rateWords = ({ sample_rate }: Definition) =>
  sample_rate < 1 ? `${Math.round(sample_rate * 100)} % kept` : undefined

/** Whether events of a name are taken, as a word. */
const Taking = ({ status }: { status: string }) => (
  <Status
    value={status === 'blocked' ? 'refused' : status === 'active' ? 'taken' : status}
    meaning={status === 'blocked' ? 'bad' : status === 'active' ? 'good' : 'warn'}
  />
)

/** The names of events, and what is expected of each. */
export const Page = () => {
  const [{ define }, setAddress] = useAddress<'define'>()
  const definitions = useDefinitions()
  const seen = useEventNames()
  const of = (name: string) => definitions.data?.find(({ event_name }) => event_name === name)
  const close = () => setAddress({ define: undefined })
  const names = new Set(seen.data?.map(({ event_name }) => event_name))
  const unseen = seen.data ? (definitions.data ?? []).filter(({ event_name }) => !names.has(event_name)) : []
  const make = (
    <Button leftSection={<Plus size={16} />} onClick={() => setAddress({ define: '+' }, false)}>
      Define an event
    </Button>
  )
  return (
    <>
      <PageHead
        title="Event definitions"
        about="Names that your app sends. A definition describes one, checks its properties or refuses it"
        actions={make}
      />
      <div className="column">
        <List<Name>
          name="Events"
          operation="GET /v1/admin/projects/{projectId}/events/names"
          keyOf={({ event_name }) => event_name}
          onOpen={({ event_name }) => setAddress({ define: event_name }, false)}
          columns={[
            {
              title: 'Event',
              show: ({ event_name }) => (
                <>
                  <RowButton onClick={() => setAddress({ define: event_name }, false)}>{event_name}</RowButton>
                  <span className="cell-sub">{of(event_name)?.description ?? 'not described'}</span>
                </>
              ),
            },
            { title: '24 hours', isNumber: true, show: (one) => count(one.count_24h) },
            {
              title: '30 days',
              isNumber: true,
              show: (one) => (
                <ProjectLink to="events" search={{ event: one.event_name }}>
                  {count(one.count_30d)}
                </ProjectLink>
              ),
            },
            { title: 'Users', isNumber: true, show: (one) => count(one.users_30d) },
            {
              title: 'Properties',
              show: (one) => (
                <span className="mono">
                  {one.properties
                    .slice(0, 4)
                    .map((property) => property.path)
                    .join(', ') || '—'}
                </span>
              ),
            },
            { title: 'Last', show: (one) => <When at={one.last_seen} /> },
            {
              title: 'State',
              show: (one) => <Taking {...one} />,
            },
          ]}
          empty={
            <Empty icon={<ListTree size={22} />} title="No events yet" action={make}>
              Names appear as your app sends them: they need no definition.
            </Empty>
          }
        />
        {unseen.length > 0 && (
          <Card title="Defined, and never seen">
            <Stack gap={8}>
              {unseen.map((one) => (
                <Group key={one.event_name} justify="space-between" wrap="nowrap">
                  <div>
                    <RowButton onClick={() => setAddress({ define: one.event_name }, false)}>
                      {one.event_name}
                    </RowButton>
                    <span className="cell-sub">
                      {[one.description, rateWords(one)].filter(Boolean).join(', ') || 'not described'}
                    </span>
                  </div>
                  <Taking {...one} />
                </Group>
              ))}
            </Stack>
          </Card>
        )}
      </div>
      <Drawer
        opened={define !== undefined}
        onClose={close}
        title={define === '+' || define === undefined ? 'Define an event' : define}
      >
        {define !== undefined &&
          (definitions.data ? (
            <DefinitionForm key={define} name={define === '+' ? '' : define} definition={of(define)} onClose={close} />
          ) : (
            <Skeleton h={320} />
          ))}
      </Drawer>
    </>
  )
}
