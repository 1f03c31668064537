import { Button, Code, Group, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { Eye } from 'lucide-react'
import { previewContentToken } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { Dialog } from '../parts/drawer.tsx'
import { useProject } from '../parts/page.tsx'
import { failed } from '../parts/states.tsx'
import { Copied } from '../parts/status.tsx'
import type { Entry } from './data.ts'

/** A link with which an app shows the entry as it is saved, whatever is published. */
export const Preview = ({ entry }: { entry: Entry }) => {
  const { path } = useProject()
  const work = useMutation({
    mutationFn: async () => (await call(previewContentToken, { path: { ...path, idOrKey: entry.id } })).data,
    onError: failed,
  })
  const link = `${location.origin}/v1/client/content/${encodeURIComponent(entry.key)}?preview_token=${work.data?.token}`
  return (
    <>
      <Button variant="default" leftSection={<Eye size={16} />} loading={work.isPending} onClick={() => work.mutate()}>
        Preview
      </Button>
      <Dialog opened={work.data !== undefined} onClose={work.reset} title="Preview link">
        <Stack gap="sm">
          <Text size="sm">
            For one hour, an app that reads this address with its client key shows “{entry.key}” as it is saved now, in
            every language.
          </Text>
          <Group gap="xs" wrap="nowrap" align="flex-start">
            <Code block tabIndex={0} data-code className="written">
              {link}
            </Code>
            <Copied value={link} label="Copy the link" />
          </Group>
        </Stack>
      </Dialog>
    </>
  )
}
