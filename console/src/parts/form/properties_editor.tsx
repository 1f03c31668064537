import { ActionIcon, Button, Stack, Text, TextInput } from '@mantine/core'
import { Plus, Trash2 } from 'lucide-react'
import { useState } from 'react'
import type { Editor } from './field.ts'
import { Labelled } from './labelled.tsx'
import { isObject } from './schema.ts'
import { asPlain, plainOf, TypedValue, TypeSelect } from './typed_value.tsx'

type Pair = { readonly name: string; readonly value: unknown }

/** Values by name, as an app keeps them beside a definition. What is inside of lists and objects stays as it is. */
export const PropertiesEditor: Editor = ({ label, help, value, onChange, error }) => {
  const [pairs, setPairs] = useState<readonly Pair[]>(() =>
    Object.entries(isObject(value) ? value : {}).map(([name, inner]) => ({ name, value: inner })),
  )
  const set = (next: readonly Pair[]) => {
    setPairs(next)
    onChange(Object.fromEntries(next.filter(({ name }) => name !== '').map((pair) => [pair.name, pair.value])))
  }
  const replaced = (at: number, next: Pair) => set(pairs.map((pair, n) => (n === at ? next : pair)))
  return (
    <Labelled id={`properties-${label}`} label={label} help={help} error={error}>
      <Stack gap={8} className="rows" role="group" aria-label={label}>
        {pairs.map((pair, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: names change while they are typed
          <div className="condition" key={at}>
            <TextInput
              aria-label={`Name ${at + 1}`}
              placeholder="Name"
              value={pair.name}
              onChange={(event) => replaced(at, { ...pair, name: event.currentTarget.value })}
            />
            {typeof pair.value === 'object' && pair.value !== null ? (
              <Text size="sm" c="dimmed" mt={8}>
                {Array.isArray(pair.value) ? 'a list' : 'an object'}, kept as it is
              </Text>
            ) : (
              <>
                <TypeSelect
                  label={`Type ${at + 1}`}
                  value={plainOf(pair.value)}
                  onChange={(type) =>
                    replaced(at, {
                      ...pair,
                      value: type === 'number' ? Number(pair.value) || 0 : asPlain(String(pair.value ?? ''), type),
                    })
                  }
                />
                <TypedValue
                  label={`Value ${at + 1}`}
                  type={plainOf(pair.value)}
                  value={pair.value}
                  onChange={(next) => replaced(at, { ...pair, value: next ?? 0 })}
                />
              </>
            )}
            <ActionIcon
              variant="subtle"
              color="gray"
              size={36}
              aria-label={`Remove ${pair.name || at + 1}`}
              onClick={() => set(pairs.filter((_, n) => n !== at))}
            >
              <Trash2 size={15} />
            </ActionIcon>
          </div>
        ))}
        <div>
          <Button
            variant="default"
            size="xs"
            leftSection={<Plus size={14} />}
            onClick={() => set([...pairs, { name: '', value: '' }])}
          >
            Add value
          </Button>
        </div>
      </Stack>
    </Labelled>
  )
}
