import { Button, Group, Select } from '@mantine/core'
import { History, ListChecks } from 'lucide-react'
import { Drawer } from '../parts/drawer.tsx'
import { List } from '../parts/list.tsx'
import { PageHead, useAddress } from '../parts/page.tsx'
import { RowButton } from '../parts/row_button.tsx'
import { Empty, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { Cancel, Done, isRunning, lasted, type Operation, OperationFacts, typeWords } from './operation.tsx'
import { Replay } from './replay.tsx'

const statuses = ['queued', 'running', 'waiting', 'succeeded', 'failed', 'cancelled']

/** Work that takes longer than a request: how far it is, and what came of it. */
export const Page = () => {
  const [{ status, open }, setAddress] = useAddress<'status' | 'open' | 'replay'>()
  return (
    <>
      <PageHead
        title="Operations"
        about="Work in the background: how far it is, and what came of it"
        actions={
          <Button
            variant="default"
            leftSection={<History size={15} />}
            onClick={() => setAddress({ replay: 'yes' }, false)}
          >
            Replay events
          </Button>
        }
      />
      <Group mb="sm">
        <Select
          aria-label="Status"
          placeholder="All of them"
          clearable
          clearButtonProps={{ 'aria-label': 'Clear the status' }}
          data={statuses}
          value={status ?? null}
          onChange={(next) => setAddress({ status: next ?? undefined })}
          w={180}
        />
      </Group>
      <List<Operation>
        name="Operations"
        operation="GET /v1/admin/projects/{projectId}/operations"
        query={{ status }}
        every={4000}
        keyOf={({ operation_id }) => operation_id}
        onOpen={({ operation_id }) => setAddress({ open: operation_id }, false)}
        columns={[
          {
            title: 'What',
            show: (one) => (
              <>
                <RowButton onClick={() => setAddress({ open: one.operation_id }, false)}>
                  {typeWords(one.type)}
                </RowButton>
                {one.failed_reason && <span className="cell-sub">{one.failed_reason}</span>}
              </>
            ),
          },
          { title: 'Status', show: (one) => <Status value={one.status} /> },
          { title: 'Done', show: (one) => <Done {...one} /> },
          { title: 'Began', show: (one) => <When at={one.created_at} /> },
          {
            title: 'Took',
            show: (one) => (isRunning(one.status) ? <Cancel operation={one} /> : lasted(one)),
          },
        ]}
        empty={
          <Empty
            icon={<ListChecks size={22} />}
            title={status ? 'None of that status' : 'Nothing ran yet'}
            action={
              status ? (
                <Button variant="default" onClick={() => setAddress({ status: undefined })}>
                  Show all
                </Button>
              ) : (
                <Button variant="default" onClick={() => setAddress({ replay: 'yes' }, false)}>
                  Replay events
                </Button>
              )
            }
          >
            Replays, backfills and other long work are listed here for 90 days.
          </Empty>
        }
      />
      <Drawer opened={open !== undefined} onClose={() => setAddress({ open: undefined })} title="Operation">
        {open && <OperationFacts id={open} />}
      </Drawer>
      <Replay />
    </>
  )
}
