import { Button, Group, Skeleton, Stack, Text } from '@mantine/core'
import { Link, useNavigate } from '@tanstack/react-router'
import { Plus } from 'lucide-react'
import { useState } from 'react'
import { Drawer } from '../parts/drawer.tsx'
import { OperationForm } from '../parts/form/form.tsx'
import { Card } from '../parts/page.tsx'
import { done, Failure } from '../parts/states.tsx'
import { useOrganizations } from './organization_data.ts'

/** The organizations of the developer, and a new one. */
export const Organizations = () => {
  const [isMaking, setMaking] = useState(false)
  const go = useNavigate()
  const { data, error, refetch } = useOrganizations()
  return (
    <Card
      title="Organizations"
      actions={
        <Button size="xs" variant="default" leftSection={<Plus size={14} />} onClick={() => setMaking(true)}>
          New organization
        </Button>
      }
    >
      {error && <Failure error={error} onRetry={refetch} />}
      {!data && !error && <Skeleton h={20} />}
      <Stack gap={8} className="links">
        {data?.map(({ id, name, role, is_personal }) => (
          <Group key={id} justify="space-between">
            <Link to={`/organizations/${id}` as never}>{name}</Link>
            <Text size="xs" c="dimmed">
              {is_personal ? 'your own' : role}
            </Text>
          </Group>
        ))}
      </Stack>
      <Drawer opened={isMaking} onClose={() => setMaking(false)} title="New organization">
        <OperationForm
          operation="POST /v1/admin/organizations"
          verb="Create organization"
          onCancel={() => setMaking(false)}
          onDone={(made) => {
            const { id, name } = made as { id: string; name: string }
            done(`“${name}” is there. Invite those who work on its projects.`)
            void go({ to: `/organizations/${id}` as never })
          }}
        />
      </Drawer>
    </Card>
  )
}
