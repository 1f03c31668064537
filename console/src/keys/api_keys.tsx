import { Button, Group, Menu } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { KeyRound, Plus } from 'lucide-react'
import { useState } from 'react'
import { getProject, revokeApiKey } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { Drawer } from '../parts/drawer.tsx'
import { OperationForm } from '../parts/form/form.tsx'
import { ShortTable } from '../parts/list.tsx'
import { PageHead, useProject } from '../parts/page.tsx'
import { Empty, Failure, Rows, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { Secret } from './secret.tsx'

type Key = {
  readonly id: string
  readonly key_prefix: string
  readonly key_type: string
  readonly environment: string
  readonly is_active: boolean
  readonly created_at: string
  readonly last_used_at: string | null
  readonly expires_at?: string | null
}
const purposes: Readonly<Record<string, string>> = {
  client: 'In your app, may be seen',
  server: 'On your server, secret',
}

const Actions = ({ of, onRotate, onEnd }: { of: Key; onRotate: (key: Key) => void; onEnd: (key: Key) => void }) => (
  <Group gap={6} justify="flex-end" wrap="nowrap">
    <Button size="compact-sm" variant="default" onClick={() => onRotate(of)}>
      Rotate
    </Button>
    <Menu>
      <Menu.Target>
        <Button size="compact-sm" variant="subtle" color="gray" aria-label={`More of ${of.key_prefix}`}>
          …
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item c="var(--bad)" onClick={() => onEnd(of)}>
          Turn off
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  </Group>
)

const keysPath = '/v1/admin/projects/{projectId}/api-keys'

/** The keys of a project: which there are, when they were last used, and how to replace one without an outage. */
export const Page = () => {
  const { path } = useProject()
  const { data, error, refetch } = useQuery({
    queryKey: ['api keys', path.projectId],
    queryFn: () => call(getProject, { path }),
  })
  const keys = data?.data.api_keys as readonly Key[] | undefined
  const [isMaking, setMaking] = useState(false)
  const [made, setMade] = useState<string>()
  const [rotated, setRotated] = useState<Key>()
  const [ended, setEnded] = useState<Key>()
  const make = (
    <Button leftSection={<Plus size={16} />} onClick={() => setMaking(true)}>
      New key
    </Button>
  )
  return (
    <>
      <PageHead title="API keys" about="What your app and your server call the API with" actions={make} />
      {error && <Failure error={error} onRetry={refetch} />}
      {!keys && !error && <Rows count={3} />}
      {keys?.length === 0 && (
        <div className="card">
          <Empty icon={<KeyRound size={22} />} title="No keys" action={make}>
            Without a key nothing reaches this project.
          </Empty>
        </div>
      )}
      {keys && keys.length > 0 && (
        <div className="card" data-flush>
          <ShortTable
            name="API keys"
            rows={keys}
            keyOf={({ id }) => id}
            columns={[
              {
                title: 'Key',
                show: (key) => (
                  <>
                    <span className="mono">{key.key_prefix}…</span>
                    <span className="cell-sub">{purposes[key.key_type] ?? key.key_type}</span>
                  </>
                ),
              },
              { title: 'Environment', show: (key) => key.environment },
              { title: 'Made', show: (key) => <When at={key.created_at} /> },
              { title: 'Last used', show: (key) => <When at={key.last_used_at} none="never" /> },
              {
                title: 'Status',
                show: (key) =>
                  key.is_active && key.expires_at ? (
                    <>
                      ends <When at={key.expires_at} />
                    </>
                  ) : (
                    <Status value={key.is_active ? 'active' : 'off'} />
                  ),
              },
              {
                title: 'Actions',
                isNumber: true,
                show: (key) => key.is_active && <Actions of={key} onRotate={setRotated} onEnd={setEnded} />,
              },
            ]}
          />
        </div>
      )}
      <Drawer opened={isMaking} onClose={() => setMaking(false)} title="New key">
        <OperationForm
          operation={`POST ${keysPath}`}
          verb="Create key"
          preset={{ key_type: 'client', environment: 'production' }}
          words={{
            key_type: { title: 'For', choices: { client: 'The app', server: 'A server' } },
            environment: { choices: { development: 'Development', production: 'Production' } },
          }}
          onCancel={() => setMaking(false)}
          onDone={(key) => {
            setMaking(false)
            setMade((key as { key: string }).key)
          }}
        />
      </Drawer>
      <Drawer
        opened={rotated !== undefined}
        onClose={() => setRotated(undefined)}
        title={`Rotate ${rotated?.key_prefix}…`}
      >
        {rotated && (
          <OperationForm
            operation={`POST ${keysPath}/{keyId}/rotate`}
            path={{ keyId: rotated.id }}
            verb="Make the new key"
            words={{
              grace_seconds: {
                title: 'The former key works for another',
                help: '0 ends it at once.',
              },
            }}
            onCancel={() => setRotated(undefined)}
            onDone={(key) => {
              setRotated(undefined)
              setMade((key as { key: string }).key)
            }}
          />
        )}
      </Drawer>
      <Secret
        title="The new key"
        text={made}
        about="Put it where the old one was."
        onClose={() => setMade(undefined)}
      />
      <Confirm
        title="Turn the key off"
        verb="Turn off"
        said={`${ended?.key_prefix}… is off.`}
        isOpen={ended !== undefined}
        onClose={() => setEnded(undefined)}
        run={() => call(revokeApiKey, { path: { ...path, keyId: ended?.id ?? '' } })}
      >
        Whatever still uses {ended?.key_prefix}… is refused from now on. A key that is off stays off.
      </Confirm>
    </>
  )
}
