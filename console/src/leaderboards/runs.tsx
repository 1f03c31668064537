import { Anchor, Stack } from '@mantine/core'
import type { Row } from '../api.ts'
import { Days } from '../parts/days.tsx'
import { ListCard } from '../parts/list_card.tsx'
import { useAddress } from '../parts/page.tsx'
import { count, Empty, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { base, pathOf, type Run, runWords } from './data.ts'

const RunList = ({ row }: { row: Row }) => {
  const [, setAddress] = useAddress<'run' | 'view'>()
  return (
    <ListCard<Row>
      title="Runs"
      operation={`${base}/runs`}
      path={pathOf(row)}
      onOpen={(run) => setAddress({ view: undefined, run: String(run['key']) }, false)}
      columns={[
        {
          title: 'Run',
          show: (run) => (
            <>
              <Anchor
                component="button"
                type="button"
                inherit
                onClick={() => setAddress({ view: undefined, run: String(run['key']) }, false)}
              >
                {runWords(run as unknown as Run)}
              </Anchor>
              <span className="cell-sub mono">{String(run['key'])}</span>
            </>
          ),
        },
        { title: 'Users', isNumber: true, show: (run) => count(run['entries'] as number) },
        { title: 'Status', show: (run) => <Status value={String(run['status'])} /> },
        { title: 'Closed', show: (run) => <When at={run['closed_at'] as string | null} none="not yet" /> },
        {
          title: 'Ranks and rewards',
          show: (run) =>
            run['status'] === 'open' ? 'when it closes' : run['is_frozen'] ? 'final and given' : 'under way',
        },
      ]}
      empty={<Empty title="No runs yet">The first begins with the first score.</Empty>}
    />
  )
}

/** The runs of a board, and how many users entered them on each day. */
export const Runs = ({ row }: { row: Row }) => (
  <Stack gap="md">
    <Days operation={`${base}/daily`} path={pathOf(row)} charts={[['entries', 'Users who entered each day']]} />
    <RunList row={row} />
  </Stack>
)
