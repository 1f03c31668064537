import { ActionIcon, Button, Drawer, Group, NumberInput, SegmentedControl, Select, Stack, Tooltip } from '@mantine/core'
import { DateTimePicker } from '@mantine/dates'
import { CalendarClock, Plus, X } from 'lucide-react'
import { useState } from 'react'
import type { Row } from '../api.ts'
import { FormFoot } from '../parts/form_foot.tsx'
import { Card } from '../parts/page.tsx'
import { Empty, When } from '../parts/states.tsx'
import { audienceOf, type Flag, rulesOf, useChange, valueWords } from './data.tsx'

type Step = { readonly at: string; readonly patch: Row }
const stepsOf = (flag: Flag) => flag.schedule as unknown as readonly Step[]

/** What a step changes, in words. */
const stepWords = ({ patch }: Step): string =>
  [
    patch['is_enabled'] === undefined ? '' : patch['is_enabled'] ? 'Switch on' : 'Switch off',
    patch['percentage'] === undefined
      ? ''
      : `Rule ${Number(patch['rule_index'] ?? 0) + 1} to ${Number(patch['percentage'])} %`,
    patch['rules'] === undefined ? '' : 'Other rules',
    patch['default_value'] === undefined ? '' : `Everyone else gets ${valueWords(patch['default_value'])}`,
    patch['off_value'] === undefined ? '' : `While off ${valueWords(patch['off_value'])}`,
  ]
    .filter((part) => part !== '')
    .join(', ')

/** What the form of a step changes. */
const offered = ['is_enabled', 'percentage', 'rule_index']
const soon = () => {
  const at = new Date(Date.now() + 864e5)
  at.setMinutes(0, 0, 0)
  return at.toISOString()
}
/** A moment as the field writes it, in the zone of the browser. */
const local = (at: string) => {
  const moment = new Date(at)
  return new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000).toISOString().slice(0, 19).replace('T', ' ')
}

const Form = ({
  flag,
  step,
  onClose,
  onSave,
}: {
  flag: Flag
  step: Step | undefined
  onClose: () => void
  onSave: (step: Step) => void
}) => {
  const rules = rulesOf(flag)
  const [at, setAt] = useState(step?.at ?? soon())
  const [kind, setKind] = useState(
    step?.patch['percentage'] === undefined ? (step?.patch['is_enabled'] === false ? 'off' : 'on') : 'share',
  )
  const [rule, setRule] = useState(String(step?.patch['rule_index'] ?? 0))
  const [share, setShare] = useState(Number(step?.patch['percentage'] ?? 100))
  const patch = kind === 'share' ? { rule_index: Number(rule), percentage: share } : { is_enabled: kind === 'on' }
  return (
    <form
      onSubmit={(submit) => {
        submit.preventDefault()
        onSave({ at, patch })
      }}
    >
      <Stack gap="md">
        <DateTimePicker
          label="When"
          required
          valueFormat="D MMM YYYY, HH:mm"
          value={local(at)}
          onChange={(next) => next && setAt(new Date(next.replace(' ', 'T')).toISOString())}
        />
        <SegmentedControl
          aria-label="What happens"
          value={kind}
          onChange={setKind}
          data={[
            { value: 'on', label: 'Switch on' },
            { value: 'off', label: 'Switch off' },
            ...(rules.length > 0 ? [{ value: 'share', label: 'Change a share' }] : []),
          ]}
        />
        {kind === 'share' && (
          <>
            <Select
              label="Rule"
              allowDeselect={false}
              data={rules.map((one, n) => ({ value: String(n), label: `${n + 1}: ${audienceOf(one, '')}` }))}
              value={rule}
              onChange={(next) => setRule(next ?? '0')}
            />
            <NumberInput
              label="Share of users"
              suffix=" %"
              min={0}
              max={100}
              value={share}
              onChange={(next) => setShare(Number(next) || 0)}
            />
          </>
        )}
      </Stack>
      <FormFoot verb={step ? 'Save step' : 'Add step'} onCancel={onClose} isDisabled={new Date(at) <= new Date()} />
    </form>
  )
}

/** The changes of a flag that are planned, each at its moment; what has happened stands in the history. */
export const Schedule = ({ flag }: { flag: Flag }) => {
  const change = useChange(flag)
  const [edited, setEdited] = useState<number | 'new'>()
  const steps = stepsOf(flag)
  const step = typeof edited === 'number' ? steps[edited] : undefined
  const save = (next: readonly Step[], said: string) => change({ schedule: next }, said)
  return (
    <Card
      title="Planned"
      actions={
        <Button size="xs" variant="default" leftSection={<Plus size={14} />} onClick={() => setEdited('new')}>
          Plan a change
        </Button>
      }
    >
      {steps.length === 0 ? (
        <Empty icon={<CalendarClock size={22} />} title="Nothing is planned">
          A flag can switch on or off, or change the share of a rule, at a moment of your choice.
        </Empty>
      ) : (
        <Stack gap="xs" role="list" aria-label="Planned changes">
          {steps.map((one, n) => (
            <Group key={`${one.at} ${stepWords(one)}`} justify="space-between" wrap="nowrap" role="listitem">
              <span>
                {stepWords(one)}
                <span className="cell-sub">
                  <When at={one.at} />
                </span>
              </span>
              <Group gap={4} wrap="nowrap">
                <Button size="compact-xs" variant="default" onClick={() => setEdited(n)}>
                  Change
                </Button>
                <Tooltip label="Remove the step">
                  <ActionIcon
                    variant="subtle"
                    color="gray"
                    aria-label={`Remove: ${stepWords(one)}`}
                    onClick={() =>
                      save(
                        steps.filter((_, at) => at !== n),
                        'The step is removed.',
                      )
                    }
                  >
                    <X size={15} />
                  </ActionIcon>
                </Tooltip>
              </Group>
            </Group>
          ))}
        </Stack>
      )}
      <Drawer opened={edited !== undefined} onClose={() => setEdited(undefined)} title="A planned change">
        {edited !== undefined && (
          <Form
            flag={flag}
            step={step}
            onClose={() => setEdited(undefined)}
            onSave={(next) => {
              setEdited(undefined)
              // what the form does not show of a step stays in it
              const kept = Object.entries(step?.patch ?? {}).filter(([name]) => !offered.includes(name))
              const whole = { at: next.at, patch: { ...Object.fromEntries(kept), ...next.patch } }
              void save(
                edited === 'new' ? [...steps, whole] : steps.map((one, at) => (at === edited ? whole : one)),
                edited === 'new' ? 'The change is planned.' : 'The step is changed.',
              )
            }}
          />
        )}
      </Drawer>
    </Card>
  )
}
