import { Stack } from '@mantine/core'
import { useState } from 'react'
import type { Row } from '../api.ts'
import { OperationForm } from '../parts/form/form.tsx'
import { done } from '../parts/states.tsx'
import { UserPicker } from '../parts/users.tsx'
import { pathOf } from './data.ts'

/** Sets the score of a user in the current run. */
export const SetScore = ({ row, user, onClose }: { row: Row; user: Row | undefined; onClose: () => void }) => {
  const [chosen, setChosen] = useState<string>()
  const of = String(user?.['app_user_id'] ?? chosen ?? '')
  return (
    <Stack gap="sm">
      {user === undefined && <UserPicker value={chosen} onChange={setChosen} />}
      {of && (
        <OperationForm
          operation="PUT /v1/admin/projects/{projectId}/leaderboards/{idOrKey}/entries/{userId}"
          path={{ ...pathOf(row), userId: of }}
          {...(user ? { preset: { score: user['score'] } } : {})}
          words={{
            score: { title: 'Score', help: 'Replaces what the user has in the current run, whatever the scoring.' },
            metadata: { isHidden: true },
          }}
          verb="Set score"
          onCancel={onClose}
          onDone={() => {
            onClose()
            done('The score is set.')
          }}
        />
      )}
    </Stack>
  )
}
