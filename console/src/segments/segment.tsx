import { ActionIcon, Alert, Button, Group, Menu, Skeleton, Stack, Switch, Text, Tooltip } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { Check, Ellipsis, RefreshCw, UsersRound, X } from 'lucide-react'
import { useState } from 'react'
import {
  addSegmentMembers,
  deleteSegment,
  explainSegmentMember,
  getSegment,
  listSegmentHistory,
  refreshSegment,
  removeSegmentMember,
  updateSegment,
} from '../../../sdk/src/generated/admin.ts'
import type { Segment } from '../../../sdk/src/generated/schemas.ts'
import { call } from '../api.ts'
import { Chart } from '../parts/chart.tsx'
import { Confirm } from '../parts/dialogs.tsx'
import { List } from '../parts/list.tsx'
import { Card, Facts, PageHead, useOpen, useParam, useProject } from '../parts/page.tsx'
import { counted, done, Empty, Failure, failed, useRefresh, When } from '../parts/states.tsx'
import { Id, Status } from '../parts/status.tsx'
import { UserSelect } from '../parts/users.tsx'
import { UserCell } from '../users/users.tsx'
import { groupOf, leafWords, placesOf } from './rules.ts'
import { RuleWords, useNames } from './words.tsx'

const shownActual = (value: unknown): string => {
  if (value === null || value === undefined) return 'nothing'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value))
    return new Date(value).toLocaleString('en', { dateStyle: 'medium', timeStyle: 'short' })
  return Array.isArray(value) ? value.join(', ') : String(value)
}

/** Why one user belongs or does not, condition by condition. */
const Explain = ({ segment }: { segment: Segment }) => {
  const { path } = useProject()
  const [userId, setUserId] = useState<string>()
  const group = groupOf(segment.rules)
  const nameOfReference = useNames(group)
  const leaves = new Map(placesOf(group))
  const { data, error } = useQuery({
    queryKey: ['explain', path.projectId, segment.id, userId],
    enabled: userId !== undefined,
    queryFn: () => call(explainSegmentMember, { path: { ...path, idOrKey: segment.id, userId: userId ?? '' } }),
  })
  return (
    <Card title="Why is somebody in it?">
      <Stack gap="sm">
        <UserSelect placeholder="Choose a user" value={userId} onChange={setUserId} />
        {error && <Failure error={error} />}
        {data && userId && (
          <>
            <Text size="sm" fw={600} role="status">
              {data.data.member ? 'Belongs to the segment' : 'Does not belong'}
            </Text>
            {data.data.leaves.map(({ path: place, matched, actual }) => {
              const leaf = leaves.get(place)
              return (
                <Group key={place} gap={8} wrap="nowrap" align="flex-start">
                  {matched ? (
                    <Check size={16} color="var(--good)" aria-label="holds" className="no-shrink" />
                  ) : (
                    <X size={16} color="var(--bad)" aria-label="does not hold" className="no-shrink" />
                  )}
                  <Text size="sm">
                    {leaf ? leafWords(leaf, nameOfReference) : place}
                    <Text span c="dimmed" size="sm">
                      , has {shownActual(actual)}
                    </Text>
                  </Text>
                </Group>
              )
            })}
          </>
        )}
      </Stack>
    </Card>
  )
}

const Members = ({ segment }: { segment: Segment }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const [userId, setUserId] = useState<string>()
  const isStatic = segment.kind === 'static'
  const at = { ...path, idOrKey: segment.id }
  const add = async (id: string) => {
    await call(addSegmentMembers, { path: at, body: { user_ids: [id] } })
    await refresh()
  }
  const remove = async (id: string) => {
    await call(removeSegmentMember, { path: { ...at, userId: id } })
    done('Taken out of the segment.', () => add(id))
    await refresh()
  }
  return (
    <Card
      title={counted(segment.member_count, 'user')}
      flush
      actions={
        isStatic && (
          <Group gap="xs">
            <UserSelect placeholder="User to add" value={userId} onChange={setUserId} />
            <Button
              size="sm"
              variant="default"
              disabled={userId === undefined}
              onClick={() =>
                add(userId ?? '').then(() => {
                  setUserId(undefined)
                  done('Added.')
                }, failed)
              }
            >
              Add
            </Button>
          </Group>
        )
      }
    >
      <List<{ app_user_id: string; entered_at: string; app_users: Parameters<typeof UserCell>[0]['user'] }>
        name="Members"
        isInside
        operation="GET /v1/admin/projects/{projectId}/segments/{idOrKey}/members"
        path={{ idOrKey: segment.id }}
        keyOf={(member) => member.app_user_id}
        to={(member) => `users/${member.app_user_id}`}
        columns={[
          { title: 'User', show: (member) => <UserCell user={member.app_users} /> },
          { title: 'Entered', show: (member) => <When at={member.entered_at} /> },
          ...(isStatic
            ? [
                {
                  title: 'Take out',
                  show: (member: { app_user_id: string }) => (
                    <Tooltip label="Take out of the segment">
                      <ActionIcon
                        variant="subtle"
                        color="gray"
                        aria-label="Take out of the segment"
                        onClick={() => remove(member.app_user_id).catch(failed)}
                      >
                        <X size={15} />
                      </ActionIcon>
                    </Tooltip>
                  ),
                },
              ]
            : []),
        ]}
        empty={
          <Empty icon={<UsersRound size={22} />} title="Nobody yet">
            {isStatic
              ? 'Choose users above.'
              : 'Who meets the conditions appears within five minutes, or at once by Count now.'}
          </Empty>
        }
      />
    </Card>
  )
}

/** One segment: how many belong, who, since when, and why. */
export const Page = () => {
  const { path } = useProject()
  const open = useOpen()
  const refresh = useRefresh()
  const id = useParam('id')
  const at = { ...path, idOrKey: id }
  const [isDeleting, setDeleting] = useState(false)
  const [waits, setWaits] = useState(0)
  const { data, error, refetch } = useQuery({
    queryKey: ['segment', path.projectId, id],
    queryFn: () => call(getSegment, { path: at }),
    refetchInterval: waits > 0 ? 1500 : false,
  })
  const history = useQuery({
    queryKey: ['segment history', path.projectId, id],
    queryFn: () => call(listSegmentHistory, { path: at, query: { days: 90 } }),
  })
  const count = useMutation({
    mutationFn: () => call(refreshSegment, { path: at }),
    onSuccess: () => {
      done('It is counted now.')
      // a worker counts: what is shown is read again until it is through
      setWaits(1)
      setTimeout(() => {
        setWaits(0)
        void refresh()
      }, 4000)
    },
    onError: failed,
  })
  const back = { title: 'Segments', to: 'segments' }
  const segment = data?.data
  if (!segment)
    return (
      <>
        <PageHead title="Segment" back={back} />
        {error ? <Failure error={error} onRetry={refetch} /> : <Skeleton h={320} />}
      </>
    )
  const isDynamic = segment.kind === 'dynamic'
  const setActive = (is_active: boolean) =>
    call(updateSegment, { path: at, body: { is_active } }).then(async () => {
      done(is_active ? 'It is on.' : 'It is off, and has no members.')
      await refresh()
    }, failed)
  return (
    <>
      <PageHead
        title={segment.name}
        about={segment.description ?? (isDynamic ? <RuleWords rules={segment.rules} /> : 'Users whom you chose')}
        back={back}
        actions={
          <>
            {isDynamic && (
              <Button
                variant="default"
                leftSection={<RefreshCw size={15} />}
                loading={count.isPending || waits > 0}
                onClick={() => count.mutate()}
              >
                Count now
              </Button>
            )}
            <Button variant="default" onClick={() => open(`segments/${segment.id}/edit`)}>
              Edit
            </Button>
            <Menu>
              <Menu.Target>
                <ActionIcon variant="default" size={36} aria-label="More actions">
                  <Ellipsis size={16} />
                </ActionIcon>
              </Menu.Target>
              <Menu.Dropdown>
                <Menu.Item onClick={() => open('users', { segment: segment.id })}>Show in the list of users</Menu.Item>
                <Menu.Item c="var(--bad)" onClick={() => setDeleting(true)}>
                  Delete segment
                </Menu.Item>
              </Menu.Dropdown>
            </Menu>
          </>
        }
      />
      {!segment.is_active && (
        <Alert color="gray" mb="md">
          It is off: it has no members, and whatever is for it reaches nobody.
        </Alert>
      )}
      <div className="split">
        <div className="column">
          {(history.data?.data.length ?? 0) > 1 && (
            <Chart
              title="Users by day"
              height={160}
              points={history.data?.data.map(({ day, member_count }) => ({ date: day, value: member_count }))}
            />
          )}
          <Members segment={segment} />
        </div>
        <div className="column">
          <Card title="Settings">
            <Stack gap="sm">
              <Switch
                label="On"
                checked={segment.is_active}
                onChange={(event) => setActive(event.currentTarget.checked)}
              />
              <Facts
                facts={[
                  [
                    'Key',
                    <span key="key" className="mono">
                      {segment.key}
                    </span>,
                  ],
                  ['Id', <Id key="id" value={segment.id} />],
                  ['Kind', <Status key="kind" value={isDynamic ? 'by conditions' : 'by hand'} meaning="none" />],
                  ...(isDynamic
                    ? [['Counted', <When key="at" at={segment.last_evaluated_at} none="not yet" />] as const]
                    : []),
                  ['Changed', <When key="changed" at={segment.updated_at} />],
                ]}
              />
              {isDynamic && (
                <Text size="sm">
                  <RuleWords rules={segment.rules} />
                </Text>
              )}
            </Stack>
          </Card>
          {isDynamic && <Explain segment={segment} />}
        </div>
      </div>
      <Confirm
        title="Delete segment"
        verb="Delete segment"
        said={`“${segment.name}” is deleted.`}
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        typed={segment.name}
        run={() => call(deleteSegment, { path: at })}
        after={() => void open('segments')}
      >
        The users stay. What refers to the segment has to be changed first.
      </Confirm>
    </>
  )
}
