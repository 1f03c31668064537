import { NumberInput, Stack, Switch, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { rampFlag } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { Drawer } from '../parts/drawer.tsx'
import { ReferenceInput } from '../parts/form/reference_input.tsx'
import { FormFoot } from '../parts/form_foot.tsx'
import { useProject } from '../parts/page.tsx'
import { counted, done, useRefresh } from '../parts/states.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'
import { type Flag, rulesOf } from './data.tsx'

const Form = ({ flag, onClose }: { flag: Flag; onClose: () => void }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const rule = rulesOf(flag).find(({ percentage }) => percentage !== undefined)
  const [values, setValues] = useState({ from: rule?.percentage || 5, to: 100, step: 10, hours: 24, rate: 2 })
  const [isGuarded, setGuarded] = useState(false)
  const [event, setEvent] = useState<string>()
  const number = (name: keyof typeof values, label: string, suffix: string, max: number) => (
    <NumberInput
      label={label}
      suffix={` ${suffix}`}
      min={0}
      max={max}
      value={values[name]}
      onChange={(next) => setValues({ ...values, [name]: Number(next) })}
    />
  )
  const steps = Math.max(0, Math.ceil((values.to - values.from) / Math.max(0.01, values.step)))
  const work = useMutation({
    mutationFn: () =>
      call(rampFlag, {
        path: { ...path, idOrKey: flag.key },
        body: {
          from: values.from,
          to: values.to,
          step: values.step,
          every_hours: values.hours,
          ...(isGuarded && event ? { guardrail: { event_name: event, max_rate: values.rate / 100 } } : {}),
          ...(flag.value_type === 'boolean' || rule ? {} : { value: flag.default_value }),
        },
      }),
    onSuccess: async () => {
      done(`The share rises from ${values.from} % to ${values.to} %.`)
      onClose()
      await refresh()
    },
  })
  useUnsaved([values, isGuarded, event], work)
  return (
    <form
      onSubmit={(submit) => {
        submit.preventDefault()
        work.mutate()
      }}
    >
      <Stack gap="md">
        <div className="pair">
          {number('from', 'Begin with', '%', 100)}
          {number('to', 'Rise to', '%', 100)}
          {number('step', 'Each step adds', '%', 100)}
          {number('hours', 'One step every', 'hours', 8760)}
        </div>
        <Text size="sm" c="dimmed">
          {counted(steps, 'step')}, over in {counted(Math.round((steps * values.hours) / 24), 'day')}.
        </Text>
        <Switch
          label="Stop by itself when something goes wrong"
          description="The share becomes 0 % and the owner of the project gets a mail"
          checked={isGuarded}
          onChange={(change) => setGuarded(change.currentTarget.checked)}
        />
        {isGuarded && (
          <div className="pair">
            <ReferenceInput
              reference="event_name"
              label="When users have the event"
              required
              value={event}
              onChange={setEvent}
            />
            {number('rate', 'More often than', '% of them', 100)}
          </div>
        )}
      </Stack>
      <FormFoot verb="Start rising" work={work} onCancel={onClose} isDisabled={isGuarded && !event} />
    </form>
  )
}

/** Raises the share of a rule step by step. */
export const RampDrawer = ({ flag, isOpen, onClose }: { flag: Flag; isOpen: boolean; onClose: () => void }) => (
  <Drawer opened={isOpen} onClose={onClose} title="Raise the share step by step">
    {isOpen && <Form flag={flag} onClose={onClose} />}
  </Drawer>
)
