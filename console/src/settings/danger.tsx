import { Button, Group, Select, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { deleteProject, getProject, transfer } from '../../../sdk/src/generated/admin.ts'
import { useOrganizations } from '../account/organization_data.ts'
import { call } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { Card, PageHead, useProject } from '../parts/page.tsx'

/** What cannot come back: the project is given away or deleted. */
export const Page = () => {
  const { path } = useProject()
  const { data } = useQuery({ queryKey: ['project', path.projectId], queryFn: () => call(getProject, { path }) })
  const [asked, setAsked] = useState<'transfer' | 'delete'>()
  const go = useNavigate()
  const name = data?.data.name ?? ''
  const [to, setTo] = useState<string | null>(null)
  const { data: organizations = [] } = useOrganizations()
  const others = organizations.filter(({ id, role }) => role === 'owner' && id !== data?.data.organization_id)
  const target = others.find(({ id }) => id === to)
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
      <Confirm
        title="Transfer the project"
        verb="Transfer"
        said={`“${name}” belongs to ${target?.name} now.`}
        isOpen={asked === 'transfer'}
        onClose={() => setAsked(undefined)}
        isDisabled={target === undefined}
        values={target?.id ?? null}
        run={() => call(transfer, { path, body: { organization_id: target?.id ?? '' } })}
      >
        {others.length === 0 ? (
          'You own no other organization. Make one on the page of your account first, or become owner of one.'
        ) : (
          <Select
            label="To which organization"
            description="You own it as well. Its members work on the project at once; those of the former one who are not in it lose it"
            data={others.map((one) => ({ value: one.id, label: one.name }))}
            value={to}
            onChange={setTo}
          />
        )}
      </Confirm>
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
