import { Button, Group, Select } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { Trophy } from 'lucide-react'
import { useState } from 'react'
import { callAny, type Row } from '../api.ts'
import { Drawer } from '../parts/drawer.tsx'
import { ListCard } from '../parts/list_card.tsx'
import { useAddress, useProject } from '../parts/page.tsx'
import { RowActions } from '../parts/row_actions.tsx'
import { count, done, Empty, failed, useRefresh, When } from '../parts/states.tsx'
import { UserName } from '../parts/users.tsx'
import { base, pathOf, rebuild, runWords, useRuns } from './data.ts'
import { SetScore } from './set_score.tsx'

/** Fills a new board from what is stored. */
const CountStored = ({ row }: { row: Row }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const work = useMutation({
    mutationFn: () => callAny(`POST ${rebuild}`, { path: { ...path, ...pathOf(row) }, body: {} }),
    onSuccess: async () => {
      done('Stored events are being counted.')
      await refresh()
    },
    onError: failed,
  })
  return (
    <Button variant="default" size="xs" loading={work.isPending} onClick={() => work.mutate()}>
      Count stored events
    </Button>
  )
}

/** The ranks of a run, and the scores that people set by hand. */
export const Ranks = ({ row }: { row: Row }) => {
  const [{ run }, setAddress] = useAddress<'run'>()
  const { path: project } = useProject()
  const { data: runs } = useRuns(row)
  const [editing, setEditing] = useState<Row | 'new'>()
  const isOld = run !== undefined
  return (
    <>
      <ListCard<Row>
        title="Ranks"
        actions={
          <Group gap="xs">
            {runs && runs.length > 1 && (
              <Select
                size="xs"
                aria-label="Run"
                data={runs.map((one, at) => ({
                  value: one.key,
                  label: at === 0 && one.status === 'open' ? `${runWords(one)} (now)` : runWords(one),
                }))}
                value={run ?? runs[0]?.key ?? null}
                allowDeselect={false}
                onChange={(next) => setAddress({ run: next === runs[0]?.key ? undefined : (next ?? undefined) })}
              />
            )}
            {!isOld && (
              <Button size="xs" variant="default" onClick={() => setEditing('new')}>
                Set a score
              </Button>
            )}
          </Group>
        }
        operation={`${base}/entries`}
        path={pathOf(row)}
        query={{ run }}
        every={isOld ? 0 : 5000}
        keyOf={(entry) => String(entry['app_user_id'])}
        columns={[
          {
            title: 'Rank and user',
            show: (entry) => (
              <>
                <span className="rank">{count(entry['rank'] as number | null)}</span>
                <UserName id={entry['app_user_id'] as string} user={entry['user'] as { display_name: string } | null} />
              </>
            ),
          },
          { title: 'Score', isNumber: true, show: (entry) => count(entry['score'] as number) },
          { title: 'Submissions', isNumber: true, show: (entry) => count(entry['submissions'] as number) },
          { title: 'Reached', show: (entry) => <When at={entry['reached_at'] as string} /> },
          ...(isOld
            ? []
            : [
                {
                  title: 'Actions',
                  isNumber: true,
                  show: (entry: Row) => (
                    <RowActions
                      isQuiet
                      row={entry}
                      path={{ ...pathOf(row), userId: String(entry['app_user_id']) }}
                      actions={[
                        {
                          title: 'Take out of the run',
                          operation: 'DELETE /v1/admin/projects/{projectId}/leaderboards/{idOrKey}/entries/{userId}',
                          verb: 'Take out',
                          said: 'The entry is out of the run.',
                          asks: () => 'The score of this user goes; new scores count again.',
                          undo: () =>
                            callAny('PUT /v1/admin/projects/{projectId}/leaderboards/{idOrKey}/entries/{userId}', {
                              path: { ...project, ...pathOf(row), userId: entry['app_user_id'] },
                              body: { score: entry['score'] },
                            }),
                        },
                      ]}
                      menu={[{ title: 'Set score', run: () => setEditing(entry) }]}
                    />
                  ),
                },
              ]),
        ]}
        empty={
          <Empty
            icon={<Trophy size={22} />}
            title="No scores yet"
            action={(row['source'] as Row)['type'] === 'manual' ? undefined : <CountStored row={row} />}
          >
            {(row['source'] as Row)['type'] === 'manual'
              ? 'They appear as your app sends them, or as you set or import some.'
              : 'They appear as users reach them. What users did before is counted if you ask for it.'}
          </Empty>
        }
      />
      <Drawer opened={editing !== undefined} onClose={() => setEditing(undefined)} title="Set a score">
        {editing !== undefined && (
          <SetScore row={row} user={editing === 'new' ? undefined : editing} onClose={() => setEditing(undefined)} />
        )}
      </Drawer>
    </>
  )
}
