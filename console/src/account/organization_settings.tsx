import { Button, Group, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { deleteOrganization, listProjects } from '../../../sdk/src/generated/admin.ts'
import type { Organization } from '../../../sdk/src/generated/schemas.ts'
import { call } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { OperationForm } from '../parts/form/form.tsx'
import { Card, Facts } from '../parts/page.tsx'
import { counted, done, When } from '../parts/states.tsx'
import { Id } from '../parts/status.tsx'

/** What an organization is called, and its end. */
export const OrganizationSettings = ({ organization }: { organization: Organization }) => {
  const { id, name, role, is_personal, created_at } = organization
  const [isDeleting, setDeleting] = useState(false)
  const go = useNavigate()
  const { data } = useQuery({
    queryKey: ['projects', id],
    queryFn: () => call(listProjects, { query: { organization_id: id } }),
  })
  const projects = data?.data.length
  const why = is_personal
    ? 'It is your own: it was made with your account, and stays as long as that.'
    : role !== 'owner'
      ? 'Its owners may delete it.'
      : projects
        ? `It has ${counted(projects, 'project')}: delete them first, or give them to another organization, each in its settings under Danger.`
        : undefined
  return (
    <Stack className="narrow">
      <Card title="Name">
        <OperationForm
          key={name}
          operation="PATCH /v1/admin/organizations/{orgId}"
          path={{ orgId: id }}
          row={organization}
          verb="Save"
          onDone={() => done('Saved.')}
        />
      </Card>
      <Card title="About this organization">
        <Facts
          facts={[
            ['Id', <Id key="id" value={id} />],
            ['Your role', role],
            ['Made', <When key="made" at={created_at} />],
          ]}
        />
      </Card>
      <Card title="Delete the organization">
        <Group justify="space-between">
          <Text size="sm" c="dimmed" flex={1}>
            {why ?? 'Its members and invites go with it, for good.'}
          </Text>
          <Button
            color="red.8"
            onClick={() => setDeleting(true)}
            disabled={why !== undefined || projects === undefined}
          >
            Delete organization
          </Button>
        </Group>
      </Card>
      <Confirm
        title="Delete the organization"
        verb="Delete organization"
        said={`“${name}” is deleted.`}
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        typed={name}
        run={() => call(deleteOrganization, { path: { orgId: id } })}
        after={() => void go({ to: '/account' as never })}
      >
        “{name}” goes for good, with its members and invites.
      </Confirm>
    </Stack>
  )
}
