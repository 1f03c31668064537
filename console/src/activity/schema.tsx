import { ActionIcon, Autocomplete, Button, Checkbox, Group, Select, Stack, Text } from '@mantine/core'
import { Plus, Trash2 } from 'lucide-react'
import { isObject } from '../parts/form/schema.ts'

/** What is expected of one property of an event. */
export type Expected = {
  readonly name: string
  readonly type: string
  readonly isNeeded: boolean
  /** Keywords beside the type, such as a maximum: kept as they are. */
  readonly more: Readonly<Record<string, unknown>>
}

const types = [
  { value: 'string', label: 'Text' },
  { value: 'number', label: 'Number' },
  { value: 'integer', label: 'Whole number' },
  { value: 'boolean', label: 'Yes or no' },
  { value: 'array', label: 'List' },
  { value: 'object', label: 'Several parts' },
  { value: 'any', label: 'Anything' },
]
const own = new Set(['type', 'properties', 'required', 'additionalProperties'])

/** The rows of a JSON Schema that is no more than properties with their types; undefined for any other. */
export const expectationsOf = (schema: unknown): readonly Expected[] | undefined => {
  if (schema === null || schema === undefined || schema === true) return []
  if (!isObject(schema) || Object.keys(schema).some((key) => !own.has(key))) return undefined
  if (schema['type'] !== undefined && schema['type'] !== 'object') return undefined
  const needed = (schema['required'] as readonly string[] | undefined) ?? []
  const properties = isObject(schema['properties']) ? schema['properties'] : {}
  if (needed.some((name) => !(name in properties))) return undefined
  if (isObject(schema['additionalProperties'])) return undefined
  return Object.entries(properties).map(([name, property]) => {
    const { type = 'any', ...more } = isObject(property) ? property : {}
    return { name, type: String(type), isNeeded: needed.includes(name), more }
  })
}

export const schemaOf = (expected: readonly Expected[], isStrict: boolean): Record<string, unknown> | null => {
  const named = expected.filter(({ name }) => name !== '')
  if (named.length === 0) return null
  const needed = named.filter(({ isNeeded }) => isNeeded).map(({ name }) => name)
  return {
    type: 'object',
    properties: Object.fromEntries(
      named.map(({ name, type, more }) => [name, { ...(type === 'any' ? {} : { type }), ...more }]),
    ),
    ...(needed.length > 0 ? { required: needed } : {}),
    ...(isStrict ? { additionalProperties: false } : {}),
  }
}

/** What is expected of the properties, as rows of name and type. */
export const Expectations = ({
  value,
  onChange,
  seen,
}: {
  value: readonly Expected[]
  onChange: (next: readonly Expected[]) => void
  seen: readonly { readonly path: string; readonly types: readonly string[] }[]
}) => {
  const change = (at: number, next: Partial<Expected>) =>
    onChange(value.map((one, n) => (n === at ? { ...one, ...next } : one)))
  const missing = seen.filter(({ path }) => !path.includes('.') && !value.some(({ name }) => name === path))
  return (
    <div>
      <Text size="sm" fw={600}>
        Properties
      </Text>
      <Text size="xs" c="dimmed" mb={6}>
        An event that does not fit is taken all the same, and marked.
      </Text>
      <Stack gap={6}>
        {value.map((one, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: names change while they are typed
          <Group key={at} gap={6} wrap="nowrap">
            <Autocomplete
              aria-label={`Property ${at + 1}`}
              placeholder="Name"
              data={missing.map(({ path }) => path)}
              value={one.name}
              onChange={(name) => change(at, { name })}
              flex={1}
            />
            <Select
              aria-label={`Type of ${one.name}`}
              data={types}
              value={one.type}
              allowDeselect={false}
              onChange={(type) => change(at, { type: type ?? 'any' })}
              w={140}
            />
            <Checkbox
              label="needed"
              aria-label={`${one.name} is needed`}
              size="xs"
              checked={one.isNeeded}
              onChange={(event) => change(at, { isNeeded: event.currentTarget.checked })}
            />
            <ActionIcon
              variant="subtle"
              color="gray"
              aria-label={`Remove ${one.name}`}
              onClick={() => onChange(value.filter((_, n) => n !== at))}
            >
              <Trash2 size={15} />
            </ActionIcon>
          </Group>
        ))}
        <Group gap={6}>
          <Button
            size="xs"
            variant="default"
            leftSection={<Plus size={14} />}
            onClick={() => onChange([...value, { name: '', type: 'string', isNeeded: false, more: {} }])}
          >
            Add property
          </Button>
          {missing.length > 0 && (
            <Button
              size="xs"
              variant="subtle"
              color="gray"
              onClick={() =>
                onChange([
                  ...value,
                  ...missing.map(({ path, types: [type = 'any', second] }) => ({
                    name: path,
                    type: second ? 'any' : type,
                    isNeeded: false,
                    more: {},
                  })),
                ])
              }
            >
              Take those that came
            </Button>
          )}
        </Group>
      </Stack>
    </div>
  )
}
