import { Stack, TagsInput, TextInput } from '@mantine/core'
import { DateTimePicker } from '@mantine/dates'
import { useState } from 'react'
import { Drawer } from '../parts/drawer.tsx'
import { FilterEditor } from '../parts/form/filter_editor.tsx'
import { ReferenceInput } from '../parts/form/reference_input.tsx'
import { FormFoot } from '../parts/form_foot.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'
import type { Flag, Rule } from './data.tsx'
import { Percentage } from './percentage.tsx'
import { ValueInput } from './value_input.tsx'

const Form = ({
  rule,
  type,
  onSave,
  onClose,
}: {
  rule: Rule
  type: string
  onSave: (rule: Rule) => void
  onClose: () => void
}) => {
  const [draft, setDraft] = useState<Rule>(rule)
  // what is emptied is left out: a rule knows no null
  const set = (changes: Partial<Record<keyof Rule, unknown>>) =>
    setDraft((before) => {
      const next: Record<string, unknown> = { ...before, ...changes }
      for (const [name, value] of Object.entries(next))
        if (value === undefined || value === '' || (Array.isArray(value) && value.length === 0)) delete next[name]
      return next as Rule
    })
  useUnsaved(draft)
  const time = (name: 'starts_at' | 'ends_at', label: string) => (
    <DateTimePicker
      label={label}
      clearable
      clearButtonProps={{ 'aria-label': 'Clear' }}
      valueFormat="D MMM YYYY, HH:mm"
      value={draft[name] ? new Date(draft[name]) : null}
      onChange={(next) => set({ [name]: next ? new Date(next).toISOString() : undefined })}
    />
  )
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        onSave(draft)
      }}
    >
      <Stack gap="md">
        <ValueInput label="They get" type={type} value={draft.value} onChange={(value) => set({ value })} />
        <div>
          <div className="field-label">Share of these users</div>
          <Percentage
            value={draft.percentage ?? 100}
            onCommit={(percentage) => set({ percentage: percentage === 100 ? undefined : percentage })}
          />
        </div>
        <ReferenceInput
          reference="segment_id"
          label="In the segment"
          placeholder="any"
          value={draft.segment_id}
          onChange={(segment_id) => set({ segment_id })}
        />
        <FilterEditor
          label="Who have these properties"
          help="Such as country, plan.tier, email or created_at"
          value={draft.filter}
          onChange={(filter) => set({ filter })}
          error={undefined}
          beside={{}}
        />
        <div className="pair">
          <TagsInput
            label="On these platforms"
            placeholder={draft.platforms?.length ? '' : 'any'}
            data={['ios', 'android', 'web']}
            value={[...(draft.platforms ?? [])]}
            onChange={(platforms) => set({ platforms })}
          />
          <TextInput
            label="From this version of the app on"
            placeholder="any"
            value={draft.min_app_version ?? ''}
            onChange={(event) => set({ min_app_version: event.currentTarget.value })}
          />
          {time('starts_at', 'From')}
          {time('ends_at', 'Until')}
        </div>
      </Stack>
      <FormFoot verb="Save rule" onCancel={onClose} />
    </form>
  )
}

/** One rule of a flag: whom it is for, how many of them, and what they get. */
export const RuleDrawer = ({
  rule,
  title,
  ...rest
}: {
  rule: Rule | undefined
  title: string
  type: string
  onSave: (rule: Rule) => void
  onClose: () => void
}) => (
  <Drawer opened={rule !== undefined} onClose={rest.onClose} title={title}>
    {rule && <Form key={title} rule={rule} {...rest} />}
  </Drawer>
)

type Values = { readonly default_value: unknown; readonly off_value: unknown }

const ElseForm = ({ flag, onSave, onClose }: { flag: Flag; onSave: (values: Values) => void; onClose: () => void }) => {
  const [values, setValues] = useState<Values>({ default_value: flag.default_value, off_value: flag.off_value })
  useUnsaved(values)
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        onSave(values)
      }}
    >
      <Stack gap="md">
        <ValueInput
          label="Where no rule matches"
          type={flag.value_type}
          value={values.default_value}
          onChange={(default_value) => setValues({ ...values, default_value })}
        />
        <ValueInput
          label="While the flag is off"
          type={flag.value_type}
          value={values.off_value}
          onChange={(off_value) => setValues({ ...values, off_value })}
        />
      </Stack>
      <FormFoot verb="Save values" onCancel={onClose} />
    </form>
  )
}

/** What users get whom no rule matches, and while the flag is off. */
export const ElseDrawer = ({
  flag,
  isOpen,
  onSave,
  onClose,
}: {
  flag: Flag
  isOpen: boolean
  onSave: (values: Values) => void
  onClose: () => void
}) => (
  <Drawer opened={isOpen} onClose={onClose} title="Everyone else">
    {isOpen && <ElseForm flag={flag} onSave={onSave} onClose={onClose} />}
  </Drawer>
)
