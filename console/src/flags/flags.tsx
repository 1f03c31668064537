import { Badge, Button, Group, SegmentedControl, Switch } from '@mantine/core'
import { Flag as Icon, Plus } from 'lucide-react'
import { useState } from 'react'
import { toggleFlag } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { List } from '../parts/list.tsx'
import { PageHead, ProjectLink, useAddress, useOpen, useProject } from '../parts/page.tsx'
import { done, Empty, failed, useRefresh, When } from '../parts/states.tsx'
import { audienceOf, type Flag, rampOf, rulesOf, valueWords } from './data.tsx'

const Toggle = ({ flag }: { flag: Flag }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const [shown, setShown] = useState<boolean>()
  const isOn = shown ?? flag.is_enabled
  const set = async (is_enabled: boolean) => {
    setShown(is_enabled)
    try {
      await call(toggleFlag, { path: { ...path, idOrKey: flag.key }, body: { is_enabled } })
      await refresh()
    } finally {
      setShown(undefined)
    }
  }
  return (
    <Switch
      checked={isOn}
      aria-label={`${flag.name} is ${isOn ? 'on' : 'off'}`}
      onChange={() => set(!isOn).then(() => done(`“${flag.name}” is ${isOn ? 'off' : 'on'}.`, () => set(isOn)), failed)}
    />
  )
}

/** What users get, in a line. */
const Rollout = ({ flag }: { flag: Flag }) => {
  const rules = rulesOf(flag)
  const ramp = rampOf(flag)
  if (!flag.is_enabled) return <span className="dimmed">everyone gets {valueWords(flag.off_value)}</span>
  const [first] = rules
  if (!first) return <>everyone gets {valueWords(flag.default_value)}</>
  return (
    <>
      <strong>{first.percentage ?? 100} %</strong> get {valueWords(first.value)}
      {ramp?.status === 'running' && (
        <Badge ml={6} color="leaf">
          rising to {ramp.to} %
        </Badge>
      )}
      <span className="cell-sub">
        {audienceOf(first, '')}
        {rules.length > 1 && `, and ${rules.length - 1} more ${rules.length === 2 ? 'rule' : 'rules'}`}
      </span>
    </>
  )
}

/** Every flag, with its switch. */
export const Page = () => {
  const open = useOpen()
  const [{ show }, setAddress] = useAddress<'show'>()
  const make = (
    <Button leftSection={<Plus size={16} />} onClick={() => open('flags/new')}>
      New flag
    </Button>
  )
  return (
    <>
      <PageHead
        title="Flags"
        about="Switches that change your app for some users or all of them, without a release"
        actions={make}
      />
      <Group mb="sm">
        <SegmentedControl
          size="xs"
          aria-label="Which flags"
          value={show ?? 'all'}
          onChange={(next) => setAddress({ show: next === 'all' ? undefined : next })}
          data={[
            { value: 'all', label: 'All' },
            { value: 'stale', label: 'No longer needed' },
          ]}
        />
      </Group>
      <List<Flag>
        name="Flags"
        operation="GET /v1/admin/projects/{projectId}/flags"
        query={show === 'stale' ? { stale: true } : {}}
        to={({ key }) => `flags/${key}`}
        columns={[
          {
            title: 'Flag',
            show: ({ key, name }) => (
              <>
                <ProjectLink to={`flags/${key}`}>{name}</ProjectLink>
                <span className="cell-sub mono">{key}</span>
              </>
            ),
          },
          { title: 'On', show: (flag) => <Toggle flag={flag} /> },
          { title: 'Who gets what', show: (flag) => <Rollout flag={flag} /> },
          {
            title: 'Last used by apps',
            show: ({ last_evaluated_at }) => <When at={last_evaluated_at} none="not yet" />,
          },
          { title: 'Last change', show: ({ updated_at }) => <When at={updated_at} /> },
        ]}
        empty={
          show === 'stale' ? (
            <Empty title="Every flag is in use">
              Here stand flags that no app asked for in 30 days, or that gave everyone the same for 60.
            </Empty>
          ) : (
            <Empty icon={<Icon size={22} />} title="No flags yet" action={make}>
              A flag shows a new feature to one per cent of users first, to a segment, or to one person, and switches it
              off at once if need be.
            </Empty>
          )
        }
      />
    </>
  )
}
