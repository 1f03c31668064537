import { Button, Group, SegmentedControl, Stack, Text, Textarea, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { Plus, Trash2 } from 'lucide-react'
import { useRef, useState } from 'react'
import { TrellisError } from '../api.ts'
import { Percentage } from '../flags/percentage.tsx'
import { ValueInput } from '../flags/value_input.tsx'
import { Drawer } from '../parts/drawer.tsx'
import { ReferenceInput } from '../parts/form/reference_input.tsx'
import { FormFoot } from '../parts/form_foot.tsx'
import { useProject } from '../parts/page.tsx'
import { done, useRefresh } from '../parts/states.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'
import { type Condition, type ConfigKey, change, create, type Draft, draftOf, typeWords } from './data.tsx'

const first: Draft = { key: '', value_type: 'string', value: '', description: '', conditions: [] }
const empty: Readonly<Record<string, unknown>> = { boolean: false, string: '', number: 0, json: {} }

const ConditionCard = ({
  condition,
  type,
  at,
  onChange,
  onRemove,
}: {
  condition: Condition
  type: string
  at: number
  onChange: (condition: Condition) => void
  onRemove: () => void
}) => (
  <section className="card" aria-label={`Exception ${at}`}>
    <Stack gap="sm">
      <Group justify="space-between">
        <Text size="sm" fw={600}>
          Exception {at}
        </Text>
        <Button
          size="compact-xs"
          variant="subtle"
          color="gray"
          leftSection={<Trash2 size={14} />}
          aria-label={`Remove exception ${at}`}
          onClick={onRemove}
        >
          Remove
        </Button>
      </Group>
      <ReferenceInput
        reference="segment_id"
        label="For users in the segment"
        placeholder="any"
        value={condition.segment_id ?? undefined}
        onChange={(segment_id) => onChange({ ...condition, segment_id: segment_id ?? null })}
      />
      <div>
        <div className="field-label">For this share of them</div>
        <Percentage
          label={`Share of exception ${at}`}
          value={condition.percentage ?? 100}
          onCommit={(percentage) => onChange({ ...condition, percentage: percentage === 100 ? null : percentage })}
        />
      </div>
      <ValueInput
        label="They get"
        type={type}
        value={condition.value}
        onChange={(value) => onChange({ ...condition, value })}
      />
    </Stack>
  </section>
)

const Form = ({ row, onClose }: { row: ConfigKey | undefined; onClose: () => void }) => {
  const { projectId } = useProject()
  const refresh = useRefresh()
  const before = row ? draftOf(row) : first
  const [draft, setDraft] = useState(before)
  const nextId = useRef(before.conditions.length)
  const [ids, setIds] = useState(() => before.conditions.map((_, at) => at))
  const changes = Object.fromEntries(
    (['value', 'description', 'conditions'] as const).flatMap((name) =>
      JSON.stringify(draft[name]) === JSON.stringify(before[name])
        ? []
        : [[name, name === 'description' ? draft.description || null : draft[name]]],
    ),
  )
  const work = useMutation({
    mutationFn: async () => {
      if (row) await change(projectId, row.key, changes)
      else await create(projectId, draft)
    },
    onSuccess: async () => {
      done(
        row ? `“${draft.key}” is changed.` : `“${draft.key}” is there.`,
        row &&
          (() =>
            change(projectId, row.key, {
              value: row.value,
              description: row.description,
              conditions: row.conditions,
            }).then(refresh)),
      )
      onClose()
      await refresh()
    },
  })
  useUnsaved(draft, work)
  const field = work.error instanceof TrellisError ? work.error.details?.['field'] : undefined
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        work.mutate()
      }}
    >
      <Stack gap="md">
        {!row && (
          <>
            <TextInput
              label="Key"
              description="What your app asks for: letters, digits and _ . : -"
              required
              data-autofocus
              placeholder="such as lesson_length"
              maxLength={128}
              value={draft.key}
              error={field === 'key' && work.error?.message}
              onChange={(event) => setDraft({ ...draft, key: event.currentTarget.value.replace(/[^\w.:-]+/g, '_') })}
              autoComplete="off"
            />
            <div>
              <div className="field-label" id="config-type">
                What it holds
              </div>
              <div className="scroll-x">
                <SegmentedControl
                  aria-labelledby="config-type"
                  value={draft.value_type}
                  onChange={(type) => setDraft({ ...draft, value_type: type, value: empty[type], conditions: [] })}
                  data={Object.entries(typeWords).map(([value, label]) => ({ value, label }))}
                />
              </div>
            </div>
          </>
        )}
        <ValueInput
          key={draft.value_type}
          label="Value"
          help={draft.conditions.length > 0 ? 'For everyone whom no exception below meets' : 'For everyone'}
          type={draft.value_type}
          value={draft.value}
          onChange={(value) => setDraft({ ...draft, value })}
        />
        <Textarea
          label="Description"
          description="What it changes in the app, for your team"
          rows={2}
          maxLength={2000}
          value={draft.description}
          onChange={(event) => setDraft({ ...draft, description: event.currentTarget.value })}
        />
        {draft.conditions.map((condition, at) => (
          <ConditionCard
            key={ids[at]}
            at={at + 1}
            type={draft.value_type}
            condition={condition}
            onChange={(next) =>
              setDraft({ ...draft, conditions: draft.conditions.map((one, n) => (n === at ? next : one)) })
            }
            onRemove={() => {
              setIds(ids.filter((_, n) => n !== at))
              setDraft({ ...draft, conditions: draft.conditions.filter((_, n) => n !== at) })
            }}
          />
        ))}
        <Group justify="space-between">
          <Button
            variant="default"
            size="xs"
            leftSection={<Plus size={14} />}
            onClick={() => {
              nextId.current += 1
              setIds([...ids, nextId.current])
              setDraft({ ...draft, conditions: [...draft.conditions, { value: draft.value, percentage: 10 }] })
            }}
          >
            Add exception
          </Button>
          {draft.conditions.length > 1 && (
            <Text size="xs" c="dimmed">
              The first that meets a user decides
            </Text>
          )}
        </Group>
      </Stack>
      <FormFoot
        verb={row ? 'Save key' : 'Create key'}
        work={work}
        onCancel={onClose}
        isDisabled={row ? Object.keys(changes).length === 0 : draft.key === ''}
      />
    </form>
  )
}

/** One key of the config, or a new one, in a drawer. */
export const KeyDrawer = ({
  row,
  isOpen,
  onClose,
}: {
  row: ConfigKey | undefined
  isOpen: boolean
  onClose: () => void
}) => (
  <Drawer opened={isOpen} onClose={onClose} title={row ? row.key : 'New config key'}>
    {isOpen && <Form key={row?.key ?? '+'} row={row} onClose={onClose} />}
  </Drawer>
)
