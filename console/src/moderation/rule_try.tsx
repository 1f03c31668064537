import { Alert, Button, Group, SegmentedControl, Stack, Text, Textarea } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useMutation, useQuery } from '@tanstack/react-query'
import { FlaskConical } from 'lucide-react'
import { useState } from 'react'
import { simulateModerationRule, testModerationRule } from '../../../sdk/src/generated/admin.ts'
import type { ModerationRule } from '../../../sdk/src/generated/schemas.ts'
import { call, type Row } from '../api.ts'
import { Card, useProject } from '../parts/page.tsx'
import { count, counted, Failure } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { actionWords, placeWords } from './rule_words.ts'

/** A text against the stored rule, while one types; and the texts of the last days. */
export const Try = ({ rule }: { rule: ModerationRule }) => {
  const { path } = useProject()
  const at = { ...path, ruleId: rule.id }
  const [text, setText] = useState('')
  const [settled] = useDebouncedValue(text, 300)
  const [days, setDays] = useState('7')
  const test = useQuery({
    queryKey: ['rule test', rule.id, rule.updated_at, settled],
    enabled: settled.trim() !== '',
    retry: false,
    queryFn: async () => (await call(testModerationRule, { path: at, body: { text: settled } })).data,
  })
  const simulate = useMutation({
    mutationFn: async () => (await call(simulateModerationRule, { path: at, body: { days: Number(days) } })).data,
  })
  const isText = ['keyword', 'regex', 'link'].includes(rule.rule_type)
  return (
    <div className="column">
      {isText && (
        <Card title="Try a text">
          <Stack gap="sm">
            <Textarea
              aria-label="Text"
              placeholder="My casino is the best"
              description="Against the rule as it is saved"
              rows={3}
              value={text}
              onChange={(event) => setText(event.currentTarget.value)}
            />
            <div role="status">
              {test.error && <Failure error={test.error} />}
              {text.trim() !== '' && test.data && (
                <Group gap={8}>
                  <Status
                    value={test.data.matches ? 'caught' : 'let through'}
                    meaning={test.data.matches ? 'bad' : 'good'}
                  />
                  <Text size="sm" c="dimmed">
                    {test.data.matches &&
                      `${test.data.found.join(', ')}: ${actionWords[test.data.action]?.toLowerCase()}`}
                  </Text>
                </Group>
              )}
            </div>
          </Stack>
        </Card>
      )}
      {isText && (
        <Card title="What it would have caught">
          <Stack gap="sm">
            <Group gap="xs">
              <SegmentedControl
                size="xs"
                aria-label="Days"
                data={[
                  { value: '1', label: 'A day' },
                  { value: '7', label: '7 days' },
                  { value: '30', label: '30 days' },
                ]}
                value={days}
                onChange={setDays}
              />
              <Button
                size="xs"
                variant="default"
                leftSection={<FlaskConical size={14} />}
                loading={simulate.isPending}
                onClick={() => simulate.mutate()}
              >
                Simulate
              </Button>
            </Group>
            {simulate.error && <Failure error={simulate.error} />}
            {simulate.data && (
              <Text size="sm" role="status">
                <b>{counted(simulate.data.caught, 'text')}</b> of {count(simulate.data.checked)} in{' '}
                {counted(simulate.data.days, 'day')}
                {!simulate.data.is_complete && ', of the newest alone: there are more than can be read at once'}.{' '}
                {Object.entries(simulate.data.by_kind as Row)
                  .filter(([, value]) => typeof value === 'number')
                  .map(([kind, value]) => `${placeWords.get(kind) ?? kind}: ${value}`)
                  .join(', ')}
              </Text>
            )}
          </Stack>
        </Card>
      )}
      {!isText && (
        <Alert color="gray">This rule looks at who writes and how often, not at a text: there is nothing to try.</Alert>
      )}
    </div>
  )
}
