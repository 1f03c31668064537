import { Button, Group } from '@mantine/core'
import { UserPlus } from 'lucide-react'
import { useState } from 'react'
import { done, failed } from './states.tsx'
import { UserSelect } from './users.tsx'

/** Finds a user, and adds them to what the page shows. */
export const AddUser = ({ onAdd }: { onAdd: (userId: string) => Promise<unknown> }) => {
  const [userId, setUserId] = useState<string>()
  const add = (id: string) =>
    onAdd(id).then(() => {
      setUserId(undefined)
      done('Added.')
    }, failed)
  return (
    <Group gap="xs">
      <UserSelect placeholder="User to add" value={userId} onChange={setUserId} />
      <Button
        variant="default"
        leftSection={<UserPlus size={15} />}
        disabled={userId === undefined}
        onClick={() => add(userId ?? '')}
      >
        Add
      </Button>
    </Group>
  )
}
