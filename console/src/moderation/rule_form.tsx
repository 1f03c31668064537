import { Button, Group, MultiSelect, SegmentedControl, Select, Stack, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { createModerationRule, updateModerationRule } from '../../../sdk/src/generated/admin.ts'
import type { ModerationRule } from '../../../sdk/src/generated/schemas.ts'
import { call, type Row, TrellisError } from '../api.ts'
import { useOpen, useProject } from '../parts/page.tsx'
import { done, Failure, sentenceOf, useRefresh } from '../parts/states.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'
import { Config } from './rule_config.tsx'
import { actionWords, places, subjects, type Type, types } from './rule_words.ts'

/** The form of a rule, a new one or one that is there. */
export const RuleForm = ({ rule }: { rule?: ModerationRule }) => {
  const { path } = useProject()
  const open = useOpen()
  const refresh = useRefresh()
  const [name, setName] = useState(rule?.name ?? '')
  const [type, setType] = useState<Type>((rule?.rule_type as Type | undefined) ?? 'keyword')
  const [config, setConfig] = useState<Row>((rule?.config as Row | undefined) ?? types.keyword[2])
  const isByReports = type === 'report_threshold'
  const action = String(config['action'] ?? (isByReports ? 'hide' : 'queue'))
  const applies = (config['applies_to'] as string[] | undefined) ?? []
  const work = useMutation({
    mutationFn: () => {
      const { applies_to: _, ...rest } = config
      const whole = { ...rest, action, ...(applies.length > 0 ? { applies_to: applies } : {}) }
      const body = { name, rule_type: type, config: whole }
      return rule
        ? call(updateModerationRule, { path: { ...path, ruleId: rule.id }, body })
        : call(createModerationRule, { path, body })
    },
    onSuccess: async ({ data }) => {
      done(rule ? 'Saved.' : `“${data.name}” watches from now on.`)
      await refresh()
      void open(`moderation-rules/${data.id}`)
    },
  })
  useUnsaved([name, type, config], work)
  const field = work.error instanceof TrellisError ? String(work.error.details?.['field'] ?? '') : ''
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        work.mutate()
      }}
    >
      <Stack gap="md">
        <TextInput
          label="Name"
          description="What your team calls it"
          required
          value={name}
          error={field === 'name' ? sentenceOf(work.error) : undefined}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <Select
          label="What it catches"
          description={types[type][1]}
          data={Object.entries(types).map(([value, [label]]) => ({ value, label }))}
          value={type}
          allowDeselect={false}
          onChange={(next) => {
            const chosen = (next ?? 'keyword') as Type
            setType(chosen)
            setConfig(types[chosen][2])
          }}
        />
        <Config type={type} config={config} set={setConfig} />
        {field.startsWith('config') && (
          <Text size="sm" c="var(--bad)" role="alert">
            {sentenceOf(work.error)}
          </Text>
        )}
        <MultiSelect
          label="Where"
          description="Everywhere if nothing is chosen"
          placeholder={applies.length === 0 ? 'Everywhere' : ''}
          data={(isByReports ? subjects : places).map(([value, label]) => ({ value, label }))}
          value={applies}
          onChange={(next) => setConfig({ ...config, applies_to: next })}
          clearable
        />
        <div>
          <Text size="sm" fw={600} mb={4} id="what-happens">
            What happens
          </Text>
          <div className="scroll-x">
            <SegmentedControl
              aria-labelledby="what-happens"
              data={(isByReports ? ['queue', 'hide'] : ['queue', 'hide', 'block']).map((value) => ({
                value,
                label: actionWords[value] ?? value,
              }))}
              value={action}
              onChange={(next) => setConfig({ ...config, action: next })}
            />
          </div>
        </div>
        {work.error && !field.startsWith('config') && field !== 'name' && <Failure error={work.error} />}
        <Group justify="flex-end" gap="xs">
          {!rule && (
            <Button variant="default" onClick={() => open('moderation-rules')}>
              Cancel
            </Button>
          )}
          <Button type="submit" loading={work.isPending} disabled={name.trim() === ''}>
            {rule ? 'Save' : 'Create rule'}
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
