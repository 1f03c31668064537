import { Button, Group, PasswordInput, Stack, Text, Textarea, TextInput } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import {
  createIntegration,
  deleteIntegration,
  listIntegrations,
  testIntegration,
} from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { Drawer } from '../parts/drawer.tsx'
import { FormFoot } from '../parts/form_foot.tsx'
import { PageHead, useAddress, useProject } from '../parts/page.tsx'
import { done, Failure, failed, Rows, useRefresh, When } from '../parts/states.tsx'
import { Copied, Status } from '../parts/status.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'

type Entry = {
  readonly name: string
  readonly title: string
  readonly kind?: 'secret' | 'long' | 'number'
  readonly isOptional?: boolean
  readonly help?: string
}
type Provider = {
  readonly id: string
  readonly title: string
  readonly about: string
  readonly entries: readonly Entry[]
  readonly isTested: boolean
}

const webhookSecret: Entry = {
  name: 'webhook_secret',
  title: 'Secret of its webhooks',
  kind: 'secret',
  isOptional: true,
}
/** What each provider asks for: docs/integrations.md, push.md and email.md. */
const providers: readonly Provider[] = [
  {
    id: 'apns',
    title: 'Apple push (APNs)',
    about: 'Push to iPhones and iPads',
    isTested: true,
    entries: [
      { name: 'key_id', title: 'Key id' },
      { name: 'team_id', title: 'Team id' },
      { name: 'bundle_id', title: 'Bundle id' },
      { name: 'private_key', title: 'Key, the text of the .p8 file', kind: 'long' },
    ],
  },
  {
    id: 'fcm',
    title: 'Google push (FCM)',
    about: 'Push to Android and the web',
    isTested: true,
    entries: [{ name: 'service_account_json', title: 'Service account, the text of its JSON file', kind: 'long' }],
  },
  {
    id: 'smtp',
    title: 'Mail server (SMTP)',
    about: 'Mail of this project through a server of your own',
    isTested: true,
    entries: [
      { name: 'host', title: 'Host' },
      { name: 'port', title: 'Port', kind: 'number', isOptional: true },
      { name: 'username', title: 'User name', isOptional: true },
      { name: 'password', title: 'Password', kind: 'secret', isOptional: true },
    ],
  },
  {
    id: 'revenuecat',
    title: 'RevenueCat',
    about: 'Subscriptions and entitlements from the stores',
    isTested: true,
    entries: [
      { name: 'secret_api_key', title: 'Secret API key (v2)', kind: 'secret' },
      { name: 'project_id', title: 'Project id at RevenueCat', isOptional: true },
      webhookSecret,
    ],
  },
  {
    id: 'superwall',
    title: 'Superwall',
    about: 'Events of paywalls',
    isTested: true,
    entries: [{ name: 'api_key', title: 'API key', kind: 'secret' }, webhookSecret],
  },
  {
    id: 'google_play',
    title: 'Google Play',
    about: 'Products and subscriptions at Google Play',
    isTested: true,
    entries: [{ name: 'service_account_json', title: 'Service account, the text of its JSON file', kind: 'long' }],
  },
  {
    id: 'sms',
    title: 'SMS',
    about: 'Codes by SMS through the HTTP API of your provider',
    isTested: false,
    entries: [
      { name: 'url', title: 'Address' },
      { name: 'body_template', title: 'Body, with {{to}} and {{text}}', kind: 'long' },
    ],
  },
]

const Connect = ({ provider, onClose }: { provider: Provider; onClose: () => void }) => {
  const { path } = useProject()
  const [values, setValues] = useState<Readonly<Record<string, string>>>({})
  const refresh = useRefresh()
  const work = useMutation({
    mutationFn: () => {
      const given = provider.entries.filter(({ name }) => (values[name] ?? '') !== '')
      const config = Object.fromEntries(
        given.map(({ name, kind }) => [name, kind === 'number' ? Number(values[name]) : values[name]]),
      )
      return call(createIntegration, { path, body: { provider: provider.id, config } })
    },
    onSuccess: async () => {
      onClose()
      done(`${provider.title} is connected.`)
      await refresh()
    },
  })
  useUnsaved(values, work)
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        work.mutate()
      }}
    >
      <Stack>
        <Text size="sm" c="dimmed">
          {provider.about}. What you enter is encrypted, and never shown again.
        </Text>
        {provider.entries.map(({ name, title, kind, isOptional = false, help }) => {
          const Control = kind === 'secret' ? PasswordInput : kind === 'long' ? Textarea : TextInput
          return (
            <Control
              key={name}
              label={title}
              description={help}
              required={!isOptional}
              autoComplete="off"
              value={values[name] ?? ''}
              onChange={(event) => setValues({ ...values, [name]: event.currentTarget.value })}
              {...(kind === 'long' ? { rows: 6, className: 'mono' } : {})}
            />
          )
        })}
        <FormFoot verb="Connect" work={work} onCancel={onClose} />
      </Stack>
    </form>
  )
}

/** The providers that a project can be connected to: which are, and whether their credentials work. */
export const Page = () => {
  const { path } = useProject()
  const [{ connect }, setAddress] = useAddress<'connect'>()
  const [removed, setRemoved] = useState<Provider>()
  const { data, error, refetch } = useQuery({
    queryKey: ['integrations', path.projectId],
    queryFn: () => call(listIntegrations, { path }),
  })
  const chosen = providers.find(({ id }) => id === connect)
  const attempt = useMutation({
    mutationFn: async ({ id }: Provider) => (await call(testIntegration, { path: { ...path, provider: id } })).data,
    onSuccess: (result, { title }) => {
      const {
        ok,
        error: reason,
        detail,
      } = result as unknown as { ok: boolean; error?: string | null; detail?: string | null }
      if (ok) done(`${title} accepts the credentials.`)
      else failed(new Error(reason ?? detail ?? `${title} refuses the credentials.`))
    },
    onError: failed,
  })
  return (
    <>
      <PageHead title="Integrations" about="Providers that this project calls, and that call it" />
      {error && <Failure error={error} onRetry={refetch} />}
      {!data && !error && <Rows count={6} height={64} />}
      {data && (
        <div className="tiles">
          {providers.map((provider) => {
            const row = data.data.find((one) => one.provider === provider.id)
            return (
              <section key={provider.id} className="card" aria-label={provider.title}>
                <Group justify="space-between" wrap="nowrap" align="flex-start">
                  <Text fw={600}>{provider.title}</Text>
                  {row && <Status value={row.is_active ? 'connected' : 'off'} />}
                </Group>
                <Text size="sm" c="dimmed" mih={42}>
                  {provider.about}
                </Text>
                {row?.webhook_url && (
                  <Group gap={4} wrap="nowrap">
                    <Text size="xs" c="dimmed" truncate>
                      {row.webhook_url}
                    </Text>
                    <Copied value={row.webhook_url} label="Copy the address of its webhooks" />
                  </Group>
                )}
                {row && (
                  <Text size="xs" c="dimmed">
                    changed <When at={row.updated_at} />
                  </Text>
                )}
                <Group gap={6} mt="sm">
                  <Button
                    size="xs"
                    variant={row ? 'default' : 'filled'}
                    onClick={() => setAddress({ connect: provider.id }, false)}
                  >
                    {row ? 'Change' : 'Connect'}
                  </Button>
                  {row && provider.isTested && (
                    <Button
                      size="xs"
                      variant="default"
                      loading={attempt.isPending && attempt.variables === provider}
                      onClick={() => attempt.mutate(provider)}
                    >
                      Test
                    </Button>
                  )}
                  {row && (
                    <Button size="xs" variant="subtle" color="gray" onClick={() => setRemoved(provider)}>
                      Disconnect
                    </Button>
                  )}
                </Group>
              </section>
            )
          })}
        </div>
      )}
      <Drawer
        opened={chosen !== undefined}
        onClose={() => setAddress({ connect: undefined })}
        title={chosen ? `Connect ${chosen.title}` : ''}
      >
        {chosen && <Connect key={chosen.id} provider={chosen} onClose={() => setAddress({ connect: undefined })} />}
      </Drawer>
      <Confirm
        title={`Disconnect ${removed?.title}`}
        verb="Disconnect"
        said={`${removed?.title} is disconnected.`}
        isOpen={removed !== undefined}
        onClose={() => setRemoved(undefined)}
        run={() => call(deleteIntegration, { path: { ...path, provider: removed?.id ?? '' } })}
      >
        Its credentials are forgotten, and its webhooks are refused.
      </Confirm>
    </>
  )
}
