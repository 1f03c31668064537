import { Button, Group, PasswordInput, Skeleton, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { createAiProvider, deleteAiProvider } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { useChosen } from '../parts/chosen.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { Drawer } from '../parts/drawer.tsx'
import { Card, PageHead, useAddress, useProject } from '../parts/page.tsx'
import { done, Failure, useRefresh } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'
import { providerNames, useProviders } from './data.ts'

const about: Readonly<Record<string, string>> = {
  anthropic: 'Claude models',
  openai: 'GPT models, and embeddings for the search in collections',
  google: 'Gemini models',
  mistral: 'Mistral models',
}

const Form = ({ name, onClose }: { name: string; onClose: () => void }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const [key, setKey] = useState('')
  const work = useMutation({
    mutationFn: () => call(createAiProvider, { path, body: { name: name as 'openai', api_key: key } }),
    onSuccess: async () => {
      done(`${providerNames[name]} is connected.`)
      onClose()
      await refresh()
    },
  })
  useUnsaved(key, work)
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        work.mutate()
      }}
    >
      <PasswordInput
        label="API key"
        description="From the console of the provider. It is kept encrypted, and shown to nobody again"
        required
        data-autofocus
        autoComplete="off"
        value={key}
        onChange={(event) => setKey(event.currentTarget.value)}
      />
      <div className="savebar">
        {work.error && (
          <div className="grow">
            <Failure error={work.error} />
          </div>
        )}
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <Button type="submit" loading={work.isPending} disabled={key === ''}>
          Connect
        </Button>
      </div>
    </form>
  )
}

/** Whose models prompts may use. */
export const Page = () => {
  const { path } = useProject()
  const { data, error, refetch } = useProviders()
  const [{ connect }, setAddress] = useAddress<'connect'>()
  const { one: gone = '', isOpen, choose, close } = useChosen<string>()
  return (
    <>
      <PageHead title="Providers" about="Whose models your prompts use. Apps never see a key" />
      {error && <Failure error={error} onRetry={refetch} />}
      {!data && !error && <Skeleton h={240} />}
      {data && (
        <div className="tiles">
          {Object.keys(about).map((name) => {
            const provider = data.find((one) => one.name === name)
            return (
              <Card
                key={name}
                title={providerNames[name] ?? name}
                actions={
                  <Status value={provider ? 'connected' : 'not connected'} meaning={provider ? 'good' : 'none'} />
                }
              >
                <Stack gap="sm">
                  <Text size="sm" c="dimmed">
                    {about[name]}
                  </Text>
                  {provider && (
                    <Text size="sm">
                      Key ending in <span className="mono">{provider.api_key_preview}</span>
                    </Text>
                  )}
                  <Group gap="xs">
                    <Button
                      size="xs"
                      variant={provider ? 'default' : 'filled'}
                      aria-label={`${provider ? 'Replace the key of' : 'Connect'} ${providerNames[name]}`}
                      onClick={() => setAddress({ connect: name }, false)}
                    >
                      {provider ? 'Replace the key' : 'Connect'}
                    </Button>
                    {provider && (
                      <Button
                        size="xs"
                        variant="default"
                        aria-label={`Disconnect ${providerNames[name]}`}
                        onClick={() => choose(name)}
                      >
                        Disconnect
                      </Button>
                    )}
                  </Group>
                </Stack>
              </Card>
            )
          })}
        </div>
      )}
      <Drawer
        opened={connect !== undefined}
        onClose={() => setAddress({ connect: undefined })}
        title={`Connect ${providerNames[connect ?? ''] ?? ''}`}
        size="md"
      >
        {connect && <Form key={connect} name={connect} onClose={() => setAddress({ connect: undefined })} />}
      </Drawer>
      <Confirm
        title={`Disconnect ${providerNames[gone]}`}
        verb="Disconnect"
        said={`${providerNames[gone]} is disconnected.`}
        isOpen={isOpen}
        onClose={close}
        run={() => call(deleteAiProvider, { path: { ...path, name: gone } })}
      >
        Its key is deleted here. Prompts that use it have to be changed first.
      </Confirm>
    </>
  )
}
