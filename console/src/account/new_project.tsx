import { Select, Stack } from '@mantine/core'
import { useState } from 'react'
import { OperationForm } from '../parts/form/form.tsx'
import { useOrganizations } from './organization_data.ts'

/** The form of a new project; whose it is stands first, where there is a choice. */
export const NewProject = ({ onCancel, onDone }: { onCancel: () => void; onDone: (made: unknown) => void }) => {
  const { data = [] } = useOrganizations()
  const open = data.filter(({ role }) => role === 'owner' || role === 'admin')
  const [chosen, setChosen] = useState<string | null>(null)
  const own = open.find(({ is_personal }) => is_personal)?.id ?? null
  return (
    <Stack gap="sm">
      {open.length > 1 && (
        <Select
          label="Organization"
          description="Its members work on the project"
          data={open.map(({ id, name }) => ({ value: id, label: name }))}
          value={chosen ?? own}
          allowDeselect={false}
          onChange={setChosen}
        />
      )}
      <OperationForm
        operation="POST /v1/admin/projects"
        verb="Create project"
        words={{
          google_oauth_client_id: { isHidden: true },
          bundle_id: { isHidden: true },
          organization_id: { isHidden: true },
          platform: { choices: { ios: 'iOS', android: 'Android', all: 'All' } },
        }}
        {...(chosen ? { fixed: { organization_id: chosen } } : {})}
        onCancel={onCancel}
        onDone={onDone}
      />
    </Stack>
  )
}
