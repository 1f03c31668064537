import { Badge, Group, Text } from '@mantine/core'
import { JsonCode } from '../parts/form/json_code.tsx'
import { count } from '../parts/states.tsx'

export type Answer = { readonly status: number; readonly milliseconds: number; readonly text: string }

/** What the server answered, as it came. */
export const AnswerView = ({ answer }: { answer: Answer }) => (
  <>
    <Group gap="xs" mb="xs" role="status">
      <Badge color={answer.status < 400 ? 'leaf' : 'red'} styles={{ label: { color: 'var(--mantine-color-text)' } }}>
        {answer.status}
      </Badge>
      <Text size="sm" c="dimmed">
        {count(answer.milliseconds)} ms, {count(answer.text.length)} characters
      </Text>
    </Group>
    <JsonCode key={answer.text} label="Answer" value={answer.text} />
  </>
)
