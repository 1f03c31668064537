import { ActionIcon, Button, Group, NumberInput, Stack, TextInput } from '@mantine/core'
import { Plus, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { type FormState, type Frame, valueAt } from './field.ts'
import { Labelled } from './labelled.tsx'
import { isObject } from './schema.ts'

/** Names with one value each, such as the amounts by currency of a reward. */
export const Pairs = ({ form, frame, isNumber }: { form: FormState; frame: Frame; isNumber: boolean }) => {
  const { path, label, help, error } = frame
  const value = valueAt(form.getValues(), path)
  const [pairs, setPairs] = useState<readonly (readonly [string, unknown])[]>(() =>
    Object.entries(isObject(value) ? value : {}),
  )
  const set = (next: typeof pairs) => {
    setPairs(next)
    const whole = next.filter(([name]) => name !== '')
    form.setFieldValue(path, whole.length === 0 ? undefined : Object.fromEntries(whole))
  }
  const replaced = (at: number, pair: readonly [string, unknown]) =>
    set(pairs.map((before, n) => (n === at ? pair : before)))
  return (
    <Labelled id={`${path}-label`} label={label} help={help} error={error}>
      <Stack gap={6} mt={6}>
        {pairs.map(([name, inner], at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: names change while they are typed
          <Group key={at} gap={6} wrap="nowrap">
            <TextInput
              aria-label={`${label}, name ${at + 1}`}
              placeholder="Name"
              value={name}
              onChange={(event) => replaced(at, [event.currentTarget.value, inner])}
              flex={1}
            />
            {isNumber ? (
              <NumberInput
                aria-label={`${label}, value ${at + 1}`}
                value={(inner as number) ?? ''}
                onChange={(next) => replaced(at, [name, next])}
                flex={1}
              />
            ) : (
              <TextInput
                aria-label={`${label}, value ${at + 1}`}
                placeholder="Value"
                value={String(inner ?? '')}
                onChange={(event) => replaced(at, [name, event.currentTarget.value])}
                flex={1}
              />
            )}
            <ActionIcon
              variant="subtle"
              color="gray"
              aria-label={`Remove ${name}`}
              onClick={() => set(pairs.filter((_, n) => n !== at))}
            >
              <Trash2 size={15} />
            </ActionIcon>
          </Group>
        ))}
        <div>
          <Button
            variant="default"
            size="xs"
            leftSection={<Plus size={14} />}
            onClick={() => set([...pairs, ['', isNumber ? 1 : '']])}
          >
            Add
          </Button>
        </div>
      </Stack>
    </Labelled>
  )
}
