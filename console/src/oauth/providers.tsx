import { Alert, Button, Group, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { Plus } from 'lucide-react'
import { useState } from 'react'
import { deleteOauthProvider, testOauthProvider } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { Drawer } from '../parts/drawer.tsx'
import { Card, PageHead, useAddress, useProject } from '../parts/page.tsx'
import { Failure, failed, Rows } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { aboutOf, isKnown, known, type Provider, titleOf, useOauthProviders, useRedirects } from './data.ts'
import { ProviderForm } from './form.tsx'
import { Redirects } from './redirects.tsx'

const Tested = ({ name }: { name: string }) => {
  const { path } = useProject()
  const work = useMutation({
    mutationFn: async () => (await call(testOauthProvider, { path: { ...path, name } })).data,
    onError: failed,
  })
  return (
    <>
      <Button
        size="xs"
        variant="default"
        aria-label={`Test ${titleOf(name)}`}
        loading={work.isPending}
        onClick={() => work.mutate()}
      >
        Test
      </Button>
      {work.data && (
        <Alert role="status" color={work.data.ok ? 'green' : 'orange'} p="xs" w="100%">
          {work.data.ok ? `${titleOf(name)} accepts this client.` : work.data.message}
        </Alert>
      )}
    </>
  )
}

type TileProps = { name: string; row: Provider | undefined; onSet: () => void; onRemove: () => void }

const Tile = ({ name, row, onSet, onRemove }: TileProps) => {
  const state = row ? (row.is_active ? 'on' : 'off') : 'not set'
  return (
    <Card
      title={titleOf(name)}
      actions={<Status value={state} meaning={state === 'on' ? 'good' : state === 'off' ? 'warn' : 'none'} />}
    >
      <Stack gap="sm">
        <Text size="sm" c="dimmed" className="breakable">
          {aboutOf(name) ?? row?.issuer}
        </Text>
        <Group gap="xs">
          <Button
            size="xs"
            variant={row ? 'default' : 'filled'}
            aria-label={`${row ? 'Change' : 'Set up'} ${titleOf(name)}`}
            onClick={onSet}
          >
            {row ? 'Change' : 'Set up'}
          </Button>
          {row && <Tested name={name} />}
          {row && (
            <Button size="xs" variant="subtle" color="gray" aria-label={`Remove ${titleOf(name)}`} onClick={onRemove}>
              Remove
            </Button>
          )}
        </Group>
      </Stack>
    </Card>
  )
}

/** Where users sign in by redirect: providers, and the addresses that a sign-in returns to. */
export const Page = () => {
  const { path } = useProject()
  const providers = useOauthProviders()
  const redirects = useRedirects()
  const [{ set }, setAddress] = useAddress<'set'>()
  const [removed, setRemoved] = useState<string>()
  const rows = providers.data ?? []
  const names = [...Object.keys(known), ...rows.map(({ name }) => name).filter((name) => !isKnown(name))]
  const error = providers.error ?? redirects.error
  const close = () => setAddress({ set: undefined })
  const chosen = set === 'new' ? '' : set
  return (
    <>
      <PageHead
        title="Sign-in"
        about="Providers that users sign in at, and where they come back to"
        actions={
          <Button leftSection={<Plus size={16} />} onClick={() => setAddress({ set: 'new' }, false)}>
            Add provider
          </Button>
        }
      />
      {error && <Failure error={error} onRetry={() => Promise.all([providers.refetch(), redirects.refetch()])} />}
      {!error && !(providers.data && redirects.data) && <Rows count={4} height={64} />}
      {providers.data && redirects.data && (
        <Stack>
          <Redirects addresses={redirects.data.addresses} callback={redirects.data.callback_url} />
          <div className="tiles">
            {names.map((name) => (
              <Tile
                key={name}
                name={name}
                row={rows.find((row) => row.name === name)}
                onSet={() => setAddress({ set: name }, false)}
                onRemove={() => setRemoved(name)}
              />
            ))}
          </div>
        </Stack>
      )}
      <Drawer
        opened={chosen !== undefined && providers.data !== undefined}
        onClose={close}
        title={chosen === '' ? 'Add an OpenID provider' : `Set up ${titleOf(chosen ?? '')}`}
      >
        {chosen !== undefined && providers.data && (
          <ProviderForm key={chosen} name={chosen} rows={rows} onClose={close} />
        )}
      </Drawer>
      <Confirm
        title={`Remove ${titleOf(removed ?? '')}`}
        verb="Remove"
        said={`${titleOf(removed ?? '')} is removed.`}
        isOpen={removed !== undefined}
        onClose={() => setRemoved(undefined)}
        run={() => call(deleteOauthProvider, { path: { ...path, name: removed ?? '' } })}
      >
        Its secret is deleted here. Users keep their accounts, and sign in with it again once it is set up anew.
      </Confirm>
    </>
  )
}
