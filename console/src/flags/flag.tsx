import { Button, Menu, Progress, Skeleton, Stack, Switch, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { TrendingUp } from 'lucide-react'
import { useState } from 'react'
import { getFlagStats } from '../../../sdk/src/generated/admin.ts'
import { call, callAny } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { Drawer } from '../parts/drawer.tsx'
import { OperationForm } from '../parts/form/form.tsx'
import { More } from '../parts/more.tsx'
import { Card, Facts, PageHead, useAddress, useOpen, useParam, useProject, Views } from '../parts/page.tsx'
import { count, counted, done, Failure, When } from '../parts/states.tsx'
import { type Flag, useChange, useFlag, valueWords } from './data.tsx'
import { History } from './history.tsx'
import { RampDrawer } from './ramp.tsx'
import { Rules } from './rules.tsx'
import { Schedule } from './schedule.tsx'
import { Seen } from './seen.tsx'
import { words } from './words.ts'

const back = { title: 'Flags', to: 'flags' }
const one = '/v1/admin/projects/{projectId}/flags/{idOrKey}'

const Stats = ({ flag }: { flag: Flag }) => {
  const { path } = useProject()
  const { data } = useQuery({
    queryKey: ['flag stats', path.projectId, flag.key],
    queryFn: async () => (await call(getFlagStats, { path: { ...path, idOrKey: flag.key }, query: { days: 30 } })).data,
    refetchInterval: 30_000,
  })
  if (!data) return <Skeleton h={120} />
  return (
    <Card title="30 days">
      {data.evaluations === 0 ? (
        <Text size="sm" c="dimmed">
          No app has asked for it yet. Each value appears here with its users.
        </Text>
      ) : (
        <Stack gap="sm">
          <Text size="sm" c="dimmed">
            Asked for {counted(data.evaluations, 'time')} by {counted(data.users, 'user')}
            {data.is_sampled && ', estimated from a sample'}
          </Text>
          {data.values.map(({ value, users, evaluations }) => (
            <div key={JSON.stringify(value)}>
              <Text size="sm">
                {valueWords(value)}: {counted(users, 'user')}
              </Text>
              <Progress
                value={(evaluations / data.evaluations) * 100}
                aria-label={`${count(evaluations)} of ${count(data.evaluations)}`}
              />
            </div>
          ))}
        </Stack>
      )}
    </Card>
  )
}

const Content = ({ flag }: { flag: Flag }) => {
  const { path } = useProject()
  const open = useOpen()
  const [{ view = 'rules', edit, ramp }, setAddress] = useAddress<'view' | 'edit' | 'ramp'>()
  const [isDeleting, setDeleting] = useState(false)
  const change = useChange(flag)
  return (
    <>
      <PageHead
        title={flag.name}
        about={flag.description ?? <span className="mono">{flag.key}</span>}
        back={back}
        actions={
          <>
            <Switch
              size="md"
              checked={flag.is_enabled}
              label={flag.is_enabled ? 'On' : 'Off'}
              onChange={() =>
                change({ is_enabled: !flag.is_enabled }, `“${flag.name}” is ${flag.is_enabled ? 'off' : 'on'}.`)
              }
            />
            <Button
              variant="default"
              leftSection={<TrendingUp size={16} />}
              onClick={() => setAddress({ ramp: 'yes' }, false)}
            >
              Raise slowly
            </Button>
            <Button variant="default" onClick={() => setAddress({ edit: 'yes' }, false)}>
              Edit
            </Button>
            <More>
              <Menu.Item c="var(--bad)" onClick={() => setDeleting(true)}>
                Delete flag
              </Menu.Item>
            </More>
          </>
        }
      />
      <Views
        label="Flag"
        views={[
          ['rules', 'Rules'],
          ['seen', 'Who sees what'],
          ['history', 'History'],
        ]}
      />
      <div className="split">
        <div className="column">
          {view === 'seen' ? (
            <Seen flag={flag} />
          ) : view === 'history' ? (
            <History flag={flag} />
          ) : (
            <>
              <Rules flag={flag} />
              <Schedule flag={flag} />
            </>
          )}
        </div>
        <div className="column">
          <Stats flag={flag} />
          <Card title="Settings">
            <Facts
              facts={[
                [
                  'Key',
                  <span key="key" className="mono">
                    {flag.key}
                  </span>,
                ],
                ['Values', words.type[flag.value_type] ?? flag.value_type],
                ['Everyone else gets', valueWords(flag.default_value)],
                ['While it is off', valueWords(flag.off_value)],
                ...(flag.owner ? [['Looked after by', flag.owner] as const] : []),
                ...(flag.tags.length > 0 ? [['Tags', flag.tags.join(', ')] as const] : []),
                ['Last used by apps', <When key="used" at={flag.last_evaluated_at} none="not yet" />],
                ['Last change', <When key="changed" at={flag.updated_at} />],
                ['Made', <When key="made" at={flag.created_at} />],
              ]}
            />
          </Card>
        </div>
      </div>
      <RampDrawer flag={flag} isOpen={ramp === 'yes'} onClose={() => setAddress({ ramp: undefined })} />
      <Drawer opened={edit === 'yes'} onClose={() => setAddress({ edit: undefined })} title={`Edit ${flag.name}`}>
        <OperationForm
          operation={`PATCH ${one}`}
          path={{ idOrKey: flag.key }}
          row={flag}
          verb="Save flag"
          words={words.edit}
          onCancel={() => setAddress({ edit: undefined })}
          onDone={() => {
            void setAddress({ edit: undefined })
            done('Saved.')
          }}
        />
      </Drawer>
      <Confirm
        title="Delete flag"
        verb="Delete flag"
        said={`“${flag.name}” is deleted.`}
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        typed={flag.key}
        run={() => callAny(`DELETE ${one}`, { path: { ...path, idOrKey: flag.key } })}
        after={() => void open('flags')}
      >
        The flag goes for good, with its values for single people, its history and its counts. Apps that ask for it get
        nothing.
      </Confirm>
    </>
  )
}

/** One flag. */
export const Page = () => {
  const { data, error, refetch } = useFlag(useParam('id'))
  if (data) return <Content flag={data} />
  return (
    <>
      <PageHead title="Flag" back={back} />
      {error ? <Failure error={error} onRetry={refetch} /> : <Skeleton h={320} />}
    </>
  )
}
