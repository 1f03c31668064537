import { Alert, Button, Menu, Skeleton, Stack, Switch, Text } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { RefreshCw } from 'lucide-react'
import { useState } from 'react'
import {
  deleteSegment,
  getSegment,
  listSegmentHistory,
  refreshSegment,
  updateSegment,
} from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { Chart } from '../parts/chart.tsx'
import { Confirm } from '../parts/dialogs.tsx'
import { More } from '../parts/more.tsx'
import { Card, Facts, PageHead, useOpen, useParam, useProject } from '../parts/page.tsx'
import { done, Failure, failed, useRefresh, When } from '../parts/states.tsx'
import { Id, Status } from '../parts/status.tsx'
import { Explain } from './explain.tsx'
import { Members } from './members.tsx'
import { RuleWords } from './words.tsx'

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
            <More>
              <Menu.Item onClick={() => open('users', { segment: segment.id })}>Show in the list of users</Menu.Item>
              <Menu.Item c="var(--bad)" onClick={() => setDeleting(true)}>
                Delete segment
              </Menu.Item>
            </More>
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
