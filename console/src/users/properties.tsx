import { ActionIcon, Button, Group, Select, Stack, TextInput } from '@mantine/core'
import { Plus, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { updateUser } from '../../../sdk/src/generated/admin.ts'
import { call, type Row } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import type { FullUser } from './one_user.ts'
import { useUser } from './one_user.ts'

type Kind = 'text' | 'number' | 'yes or no' | 'list' | 'kept'
/** One property by its path. What has no row of its own, such as a list of objects, is kept as it is. */
type Line = { readonly path: string; readonly kind: Kind; readonly text: string; readonly kept?: unknown }

const isPlainList = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string' && !one.includes(','))

export const linesOf = (row: Row, before = ''): readonly Line[] =>
  Object.entries(row).flatMap(([name, value]): readonly Line[] => {
    const path = before + name
    if (typeof value === 'string') return [{ path, kind: 'text', text: value }]
    if (typeof value === 'number') return [{ path, kind: 'number', text: String(value) }]
    if (typeof value === 'boolean') return [{ path, kind: 'yes or no', text: value ? 'yes' : 'no' }]
    if (isPlainList(value)) return [{ path, kind: 'list', text: value.join(', ') }]
    const isInner = typeof value === 'object' && value !== null && !Array.isArray(value)
    // a name with a point in it would become a path
    if (isInner && Object.keys(value).length > 0 && !Object.keys(value).some((key) => key.includes('.')))
      return linesOf(value as Row, `${path}.`)
    return [{ path, kind: 'kept', text: '', kept: value }]
  })

const partOf = ({ kind, text, kept }: Line): unknown => {
  if (kind === 'kept') return kept
  if (kind === 'number') return Number(text)
  if (kind === 'yes or no') return text === 'yes'
  if (kind === 'list')
    return text
      .split(',')
      .map((one) => one.trim())
      .filter((one) => one !== '')
  return text
}

/** The properties that lines stand for: `plan.tier` is `tier` within `plan`, unless the name itself had a point before. */
export const propertiesOf = (lines: readonly Line[], before: Row): Row => {
  const whole: Record<string, unknown> = {}
  for (const line of lines) {
    const names = line.path in before ? [line.path] : line.path.split('.')
    let inner = whole
    for (const name of names.slice(0, -1)) {
      const next = inner[name]
      inner[name] = typeof next === 'object' && next !== null ? next : {}
      inner = inner[name] as Record<string, unknown>
    }
    inner[names.at(-1) as string] = partOf(line)
  }
  return whole
}

const problemOf = ({ path, kind, text }: Line, all: readonly Line[]): string | undefined => {
  if (path.trim() === '') return 'Needs a name'
  if (all.filter((one) => one.path === path).length > 1) return 'Is there twice'
  if (kind === 'number' && (text.trim() === '' || !Number.isFinite(Number(text)))) return 'Not a number'
  return undefined
}

/** The properties of a user as rows of name, kind and value. */
export const PropertiesDialog = ({
  user,
  isOpen,
  onClose,
}: {
  user: FullUser
  isOpen: boolean
  onClose: () => void
}) => {
  const { path } = useUser()
  const before = user.properties as Row
  const [lines, setLines] = useState<readonly Line[]>(() => linesOf(before))
  const change = (at: number, next: Partial<Line>) =>
    setLines(lines.map((line, n) => (n === at ? { ...line, ...next } : line)))
  const write = (properties: Row) => call(updateUser, { path, body: { properties } })
  return (
    <Confirm
      title="Properties"
      verb="Save"
      said="The properties are saved."
      isDangerous={false}
      values={lines}
      isOpen={isOpen}
      isDisabled={lines.some((line) => problemOf(line, lines) !== undefined)}
      onClose={() => {
        setLines(linesOf(before))
        onClose()
      }}
      run={() => write(propertiesOf(lines, before))}
      undo={() => write(before)}
    >
      <Stack gap={8}>
        {lines.map((line, at) => {
          const problem = problemOf(line, lines)
          return (
            // biome-ignore lint/suspicious/noArrayIndexKey: names change while they are typed
            <Group key={at} gap={6} wrap="nowrap" align="flex-start">
              <TextInput
                aria-label={`Name of property ${at + 1}`}
                placeholder="plan.tier"
                value={line.path}
                error={line.path === '' ? undefined : problem === 'Not a number' ? undefined : problem}
                onChange={(event) => change(at, { path: event.currentTarget.value })}
                flex={1}
              />
              {line.kind === 'kept' ? (
                <TextInput
                  aria-label={`Value of ${line.path}`}
                  value="several parts, kept as they are"
                  disabled
                  flex={1}
                />
              ) : line.kind === 'yes or no' ? (
                <Select
                  aria-label={`Value of ${line.path}`}
                  data={['yes', 'no']}
                  value={line.text}
                  allowDeselect={false}
                  onChange={(text) => change(at, { text: text ?? 'no' })}
                  flex={1}
                />
              ) : (
                <TextInput
                  aria-label={`Value of ${line.path}`}
                  value={line.text}
                  error={problem === 'Not a number' ? problem : undefined}
                  onChange={(event) => change(at, { text: event.currentTarget.value })}
                  flex={1}
                />
              )}
              <Select
                aria-label={`Kind of ${line.path}`}
                data={line.kind === 'kept' ? ['kept'] : ['text', 'number', 'yes or no', 'list']}
                value={line.kind}
                disabled={line.kind === 'kept'}
                allowDeselect={false}
                onChange={(kind) =>
                  change(at, { kind: kind as Kind, ...(kind === 'yes or no' ? { text: 'yes' } : {}) })
                }
                w={104}
              />
              <ActionIcon
                variant="subtle"
                color="gray"
                mt={4}
                aria-label={`Remove ${line.path}`}
                onClick={() => setLines(lines.filter((_, n) => n !== at))}
              >
                <Trash2 size={15} />
              </ActionIcon>
            </Group>
          )
        })}
        <div>
          <Button
            size="xs"
            variant="default"
            leftSection={<Plus size={14} />}
            onClick={() => setLines([...lines, { path: '', kind: 'text', text: '' }])}
          >
            Add property
          </Button>
        </div>
      </Stack>
    </Confirm>
  )
}
