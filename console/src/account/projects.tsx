import { Alert, Button, Code, Group, Skeleton, Stack, Text } from '@mantine/core'
import { Link, useNavigate } from '@tanstack/react-router'
import { FolderPlus, Plus } from 'lucide-react'
import { useState } from 'react'
import { Drawer } from '../parts/drawer.tsx'
import { PageHead } from '../parts/page.tsx'
import { Empty, Failure, When } from '../parts/states.tsx'
import { Copied, Status } from '../parts/status.tsx'
import { useProjects } from '../shell/shell.tsx'
import { NewProject } from './new_project.tsx'

type Created = {
  readonly project: { readonly id: string; readonly name: string }
  readonly api_keys: Readonly<Record<'client' | 'server', { readonly key: string }>>
}

const keysOf = ({ api_keys }: Created) => [
  { title: 'Client key', key: api_keys.client.key, about: 'For your app: it names the project, and may be seen.' },
  {
    title: 'Server key',
    key: api_keys.server.key,
    about: 'For your backend alone: it may do everything in the project.',
  },
]

/** A project that was just made: both keys, which are shown once, and a call that works when it is pasted. */
const Keys = ({ made, onDone }: { made: Created; onDone: () => void }) => {
  const keys = keysOf(made)
  const client = made.api_keys.client.key
  const snippet = `curl ${location.origin}/v1/client/auth/anonymous \\\n  -X POST -H "x-api-key: ${client}"`
  return (
    <Stack>
      <Alert color="yellow" title="Keep these keys now">
        They are shown this once.
      </Alert>
      {keys.map(({ title, key, about }) => (
        <div key={title}>
          <Text fw={600} size="sm">
            {title}
          </Text>
          <Text size="xs" c="dimmed" mb={4}>
            {about}
          </Text>
          <Group gap={4} wrap="nowrap">
            <Code className="secret" tabIndex={0}>
              {key}
            </Code>
            <Copied value={key} label={`Copy the ${title.toLowerCase()}`} />
          </Group>
        </div>
      ))}
      <div>
        <Group justify="space-between" mb={4}>
          <Text fw={600} size="sm">
            Sign the first user in
          </Text>
          <Copied value={snippet} label="Copy the call" />
        </Group>
        <Code block tabIndex={0}>
          {snippet}
        </Code>
      </div>
      <Group justify="flex-end">
        <Button onClick={onDone}>Open the project</Button>
      </Group>
    </Stack>
  )
}

/** The projects of the developer, and a new one. */
export const Page = () => {
  const { data, error, isPending, refetch } = useProjects()
  const [isMaking, setMaking] = useState(false)
  const [made, setMade] = useState<Created>()
  const go = useNavigate()
  const make = (
    <Button leftSection={<Plus size={16} />} onClick={() => setMaking(true)}>
      New project
    </Button>
  )
  const close = () => {
    setMaking(false)
    setMade(undefined)
  }
  return (
    <>
      <PageHead title="Projects" about="Each has its own database, users and keys" actions={make} />
      {error && <Failure error={error} onRetry={refetch} />}
      {isPending ? (
        <Skeleton h={120} />
      ) : data?.data.length === 0 ? (
        <div className="card">
          <Empty icon={<FolderPlus size={22} />} title="No projects yet" action={make}>
            A project is one app: its users, their data, and everything that happens in it.
          </Empty>
        </div>
      ) : (
        <div className="tiles">
          {data?.data.map((project) => (
            <Link key={project.id} to={`/projects/${project.id}` as never} className="card tile">
              <Text fw={600} truncate>
                {project.name}
              </Text>
              <Group justify="space-between" mt={10}>
                <Status value={project.effective_tier} />
                <Text size="xs" c="dimmed">
                  made <When at={project.created_at} />
                </Text>
              </Group>
            </Link>
          ))}
        </div>
      )}
      <Drawer opened={isMaking} onClose={close} title={made ? `“${made.project.name}” is ready` : 'New project'}>
        {made ? (
          <Keys made={made} onDone={() => go({ to: `/projects/${made.project.id}` as never })} />
        ) : (
          <NewProject onCancel={close} onDone={(value) => setMade(value as Created)} />
        )}
      </Drawer>
    </>
  )
}
