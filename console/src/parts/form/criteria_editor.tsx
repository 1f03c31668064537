import { Button, Card, Group, NumberInput, Select, Stack, Text, TextInput } from '@mantine/core'
import { DateTimePicker } from '@mantine/dates'
import { useMutation } from '@tanstack/react-query'
import { callAny } from '../../api.ts'
import { useProject } from '../page.tsx'
import { counted, sentenceOf } from '../states.tsx'
import type { Editor, Values } from './field.ts'
import { FilterEditor } from './filter_editor.tsx'
import { Labelled } from './labelled.tsx'
import { ReferenceInput } from './reference_input.tsx'
import { isObject } from './schema.ts'

const types = [
  { value: 'event_count', label: 'Number of events' },
  { value: 'streak_length', label: 'Length of a streak' },
  { value: 'xp_threshold', label: 'XP in all' },
  { value: 'property_value', label: 'A number about the user' },
]
const targets: Readonly<Record<string, string>> = {
  event_count: 'How many events',
  streak_length: 'How long',
  xp_threshold: 'How much XP',
  property_value: 'From which value on',
}

const Preview = ({ criteria }: { criteria: Values }) => {
  const { path } = useProject()
  const work = useMutation({
    mutationFn: async () => {
      const { data } = await callAny('POST /v1/admin/projects/{projectId}/achievements/dry-run', {
        path,
        body: { criteria },
      })
      return data as { users_now: number; users_30d_ago_estimate: number | null; is_estimate: boolean }
    },
  })
  return (
    <Group gap="sm">
      <Button variant="default" size="xs" loading={work.isPending} onClick={() => work.mutate()}>
        Who would have it now?
      </Button>
      <Text size="sm" c={work.error ? 'var(--bad)' : undefined} role="status">
        {work.error
          ? sentenceOf(work.error)
          : work.data &&
            `${work.data.is_estimate ? 'About ' : ''}${counted(work.data.users_now, 'user')} at once${
              work.data.users_30d_ago_estimate === null
                ? ''
                : `; ${counted(work.data.users_30d_ago_estimate, 'user')} a month ago`
            }`}
      </Text>
    </Group>
  )
}

/** When an achievement unlocks: what is measured, and the target. */
export const CriteriaEditor: Editor = ({ label, help, value, onChange, error }) => {
  const criteria = isObject(value) ? value : {}
  const type = criteria['type'] as string | undefined
  const set = (name: string, next: unknown) => {
    const { [name]: _, ...rest } = criteria
    onChange(next === undefined || next === '' ? rest : { ...rest, [name]: next })
  }
  return (
    <Labelled id={`criteria-${label}`} label={label} help={help} error={error} isRequired>
      <Card withBorder mt={4} p="md">
        <Stack gap="sm">
          <div className="pair">
            <Select
              label="What counts"
              required
              placeholder="Choose"
              data={types}
              value={type ?? null}
              allowDeselect={false}
              onChange={(next) => onChange({ type: next, target_value: criteria['target_value'] })}
            />
            {type && (
              <NumberInput
                label={targets[type] ?? 'Target'}
                required
                min={type === 'property_value' ? -1e15 : 1}
                thousandSeparator=","
                value={(criteria['target_value'] as number) ?? ''}
                onChange={(next) => set('target_value', next === '' ? undefined : Number(next))}
              />
            )}
            {type === 'event_count' && (
              <>
                <ReferenceInput
                  reference="event_name"
                  label="Event"
                  required
                  placeholder="Such as lesson_completed"
                  value={criteria['event_name'] as string | undefined}
                  onChange={(next) => set('event_name', next)}
                />
                <DateTimePicker
                  label="Only since"
                  placeholder="All time"
                  clearable
                  clearButtonProps={{ 'aria-label': 'Clear' }}
                  valueFormat="D MMM YYYY, HH:mm"
                  value={criteria['since'] ? new Date(String(criteria['since'])) : null}
                  onChange={(next) => set('since', next ? new Date(next).toISOString() : undefined)}
                />
              </>
            )}
            {type === 'streak_length' && (
              <ReferenceInput
                reference="streak_definition_id"
                label="Streak"
                placeholder="Any streak"
                value={criteria['streak_definition_id'] as string | undefined}
                onChange={(next) => set('streak_definition_id', next)}
              />
            )}
            {type === 'property_value' && (
              <TextInput
                label="Property of the user"
                required
                placeholder="Such as stats.wins"
                value={(criteria['property_key'] as string) ?? ''}
                onChange={(event) => set('property_key', event.currentTarget.value)}
              />
            )}
          </div>
          {type === 'event_count' && (
            <FilterEditor
              label="Only events where"
              help={undefined}
              value={criteria['event_filter']}
              onChange={(next) => set('event_filter', next)}
              error={undefined}
              beside={criteria}
            />
          )}
          {type && <Preview criteria={criteria} />}
        </Stack>
      </Card>
    </Labelled>
  )
}
