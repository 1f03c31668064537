import { ActionIcon, Button, Select, Stack, Switch, TextInput } from '@mantine/core'
import { Plus, Trash2 } from 'lucide-react'
import type { Editor } from './field.ts'
import { PropertiesEditor } from './properties_editor.tsx'
import { ReferenceInput } from './reference_input.tsx'
import { isObject } from './schema.ts'

type Option = { readonly id: string; readonly label: string }

const Options = ({
  options,
  onChange,
}: {
  options: readonly Option[]
  onChange: (next: readonly Option[]) => void
}) => (
  <Stack gap={6}>
    {options.map((option, at) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: identifiers change while labels are typed
      <fieldset className="condition" key={at} aria-label={`Answer ${at + 1}`}>
        <TextInput
          aria-label={`Answer ${at + 1}`}
          placeholder="Answer"
          value={option.label}
          onChange={(event) => {
            const label = event.currentTarget.value
            const id = label
              .toLowerCase()
              .replace(/[^a-z0-9]+/g, '_')
              .slice(0, 60)
            onChange(options.map((one, n) => (n === at ? { id, label } : one)))
          }}
        />
        <ActionIcon
          variant="subtle"
          color="gray"
          size={36}
          aria-label={`Remove answer ${at + 1}`}
          onClick={() => onChange(options.filter((_, n) => n !== at))}
        >
          <Trash2 size={15} />
        </ActionIcon>
      </fieldset>
    ))}
    <div>
      <Button
        variant="default"
        size="xs"
        leftSection={<Plus size={14} />}
        onClick={() => onChange([...options, { id: '', label: '' }])}
      >
        Add answer
      </Button>
    </div>
  </Stack>
)

/** What a step of onboarding needs, by its kind: answers, a permission, an offering, a link. */
export const StepEditor: Editor = (props) => {
  const { value, onChange, beside, error } = props
  const config = isObject(value) ? value : {}
  const set = (name: string, next: unknown) => onChange({ ...config, [name]: next })
  if (beside['type'] === 'question')
    return (
      <Stack gap="xs">
        <Options
          options={(config['options'] as readonly Option[] | undefined) ?? []}
          onChange={(next) => set('options', next)}
        />
        <Switch
          label="Several answers"
          checked={config['multiple'] === true}
          onChange={(event) => set('multiple', event.currentTarget.checked)}
        />
      </Stack>
    )
  if (beside['type'] === 'permission')
    return (
      <Select
        label="Permission"
        error={error}
        data={[
          { value: 'push', label: 'Notifications' },
          { value: 'location', label: 'Location' },
          { value: 'tracking', label: 'Tracking' },
        ]}
        value={(config['kind'] as string) ?? null}
        onChange={(next) => set('kind', next ?? undefined)}
      />
    )
  if (beside['type'] === 'paywall')
    return (
      <ReferenceInput
        reference="offering_key"
        label="Offering"
        error={error}
        value={config['offering_key'] as string | undefined}
        onChange={(next) => set('offering_key', next)}
      />
    )
  if (beside['type'] === 'action')
    return (
      <TextInput
        label="Link into the app"
        error={error}
        placeholder="app://lessons/1"
        value={(config['deep_link'] as string) ?? ''}
        onChange={(event) => set('deep_link', event.currentTarget.value)}
      />
    )
  return <PropertiesEditor {...props} />
}
