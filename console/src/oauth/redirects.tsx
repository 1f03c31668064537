import { Group, Stack, Text, Textarea } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { putOauthRedirects } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { FormFoot } from '../parts/form_foot.tsx'
import { Card, useProject } from '../parts/page.tsx'
import { done, useRefresh } from '../parts/states.tsx'
import { Copied } from '../parts/status.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'

const linesIn = (text: string) => text.split(/\s+/).filter(Boolean)

/** Where sign-ins may return to, and where providers send the browser. */
export const Redirects = ({ addresses, callback }: { addresses: readonly string[]; callback: string }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const [text, setText] = useState(addresses.join('\n'))
  const work = useMutation({
    mutationFn: () => call(putOauthRedirects, { path, body: { addresses: linesIn(text) } }),
    onSuccess: async ({ data }) => {
      setText(data.addresses.join('\n'))
      done('The addresses are saved.')
      await refresh()
    },
  })
  useUnsaved(text, work)
  return (
    <Card title="Addresses">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          work.mutate()
        }}
      >
        <Stack gap="sm">
          <div>
            <Text size="sm" fw={500}>
              Callback address
            </Text>
            <Group gap={4} wrap="nowrap">
              <Text size="sm" className="mono breakable">
                {callback}
              </Text>
              <Copied value={callback} label="Copy the callback address" />
            </Group>
            <Text size="xs" c="dimmed">
              Enter it at each provider as the redirect URI
            </Text>
          </div>
          <Textarea
            label="Redirect addresses"
            description="Where a sign-in may return to, one a line, the default first. At the end of a path /* allows what is below"
            placeholder="https://app.example.com/signed-in"
            autosize
            minRows={3}
            className="mono"
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
          />
          <FormFoot verb="Save addresses" work={work} isDisabled={text === addresses.join('\n')} />
        </Stack>
      </form>
    </Card>
  )
}
