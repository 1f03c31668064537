import { Button, Group, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { deleteProject, getProject } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { Drawer } from '../parts/drawer.tsx'
import { OperationForm } from '../parts/form/form.tsx'
import { Card, PageHead, useProject } from '../parts/page.tsx'
import { done } from '../parts/states.tsx'

/** What cannot come back: the project is given away or deleted. */
export const Page = () => {
  const { path } = useProject()
  const { data } = useQuery({ queryKey: ['project', path.projectId], queryFn: () => call(getProject, { path }) })
  const [asked, setAsked] = useState<'transfer' | 'delete'>()
  const go = useNavigate()
  const name = data?.data.name ?? ''
  return (
    <>
      <PageHead title="Danger" about="What cannot come back" />
      <Stack className="narrow">
        <Card title="Give the project to another organization">
          <Group justify="space-between">
            <Text size="sm" c="dimmed" flex={1}>
              Its members work on it from then on; yours no longer do.
            </Text>
            <Button variant="default" onClick={() => setAsked('transfer')}>
              Transfer
            </Button>
          </Group>
        </Card>
        <Card title="Delete the project">
          <Group justify="space-between">
            <Text size="sm" c="dimmed" flex={1}>
              Its keys stop at once. Its users, rows and files are removed for good.
            </Text>
            <Button color="red.8" onClick={() => setAsked('delete')} disabled={name === ''}>
              Delete project
            </Button>
          </Group>
        </Card>
      </Stack>
      <Drawer opened={asked === 'transfer'} onClose={() => setAsked(undefined)} title="Transfer the project">
        <OperationForm
          operation="POST /v1/admin/projects/{projectId}/transfer"
          verb="Transfer"
          words={{ organization_id: { from: 'organization_id' } }}
          onCancel={() => setAsked(undefined)}
          onDone={() => {
            setAsked(undefined)
            done('The project has moved.')
          }}
        />
      </Drawer>
      <Confirm
        title="Delete the project"
        verb="Delete project"
        said={`“${name}” is deleted.`}
        isOpen={asked === 'delete'}
        onClose={() => setAsked(undefined)}
        typed={name}
        run={() => call(deleteProject, { path })}
        after={() => void go({ to: '/' as never })}
      >
        Every user, row and file of “{name}” goes for good.
      </Confirm>
    </>
  )
}
