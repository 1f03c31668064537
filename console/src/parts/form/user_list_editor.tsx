import { CloseButton, Group, Stack } from '@mantine/core'
import { UserName, UserSelect } from '../users.tsx'
import type { Editor } from './field.ts'
import { Labelled } from './labelled.tsx'

/** Users one by one, found by their names. */
export const UserListEditor: Editor = ({ label, help, value, onChange, error }) => {
  const ids = Array.isArray(value) ? value.map(String) : []
  const set = (next: readonly string[]) => onChange(next.length === 0 ? undefined : next)
  return (
    <Labelled id={`users-${label}`} label={label} help={help} error={error}>
      <Stack gap={6} mt={6} role="group" aria-label={label}>
        {ids.map((id, at) => (
          <Group key={id} gap={6} justify="space-between">
            <UserName id={id} />
            <CloseButton
              aria-label={`Remove user ${at + 1}`}
              onClick={() => set(ids.filter((other) => other !== id))}
            />
          </Group>
        ))}
        <UserSelect
          key={ids.length}
          placeholder="Add a user"
          value={undefined}
          onChange={(id) => id && !ids.includes(id) && set([...ids, id])}
        />
      </Stack>
    </Labelled>
  )
}
