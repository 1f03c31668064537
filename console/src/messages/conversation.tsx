import { Button, Group, Stack, Text, Textarea } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { MessageSquare } from 'lucide-react'
import { useState } from 'react'
import { adminDeleteMessage } from '../../../sdk/src/generated/admin.ts'
import { call, callAny, type Row } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { useRows } from '../parts/list.tsx'
import { Card, PageHead, ProjectLink, useParam, useProject } from '../parts/page.tsx'
import { done, Empty, Failure, Rows, useRefresh, When } from '../parts/states.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'

const messages = '/v1/admin/projects/{projectId}/messaging/conversations/{conversationId}/messages'

/** One conversation, as its members see it; a message can be taken out, and the product can write. */
export const Page = () => {
  const { path } = useProject()
  const conversationId = useParam('conversationId')
  const { list, rows } = useRows<Row>({ operation: `GET ${messages}`, path: { conversationId }, every: 5000 })
  const [text, setText] = useState('')
  const [removed, setRemoved] = useState<Row>()
  const refresh = useRefresh()
  const send = useMutation({
    mutationFn: () => callAny(`POST ${messages}`, { path: { ...path, conversationId }, body: { body: text } }),
    onSuccess: async () => {
      setText('')
      done('Sent.')
      await refresh()
    },
  })
  useUnsaved(text)
  return (
    <>
      <PageHead title="Conversation" back={{ title: 'Conversations', to: 'messages' }} />
      <div className="narrow">
        <Card>
          {list.error && <Failure error={list.error} onRetry={list.refetch} />}
          {list.isPending && <Rows />}
          {!list.isPending && rows.length === 0 && (
            <Empty icon={<MessageSquare size={22} />} title="Nothing written yet" />
          )}
          <Stack gap="md">
            {[...rows].reverse().map((row) => {
              const sender = row['sender'] as Row | null
              return (
                <div key={String(row['id'])}>
                  <Group gap={8} justify="space-between" className="links">
                    {row['sender_id'] ? (
                      <ProjectLink to={`users/${row['sender_id']}`}>
                        {String(sender?.['display_name'] ?? 'Anonymous user')}
                      </ProjectLink>
                    ) : (
                      <Text fw={500}>The product</Text>
                    )}
                    <Group gap={8}>
                      <Text size="xs" c="dimmed" component="span">
                        <When at={row['created_at'] as string} />
                      </Text>
                      <Button size="compact-xs" variant="subtle" color="gray" onClick={() => setRemoved(row)}>
                        Delete
                      </Button>
                    </Group>
                  </Group>
                  <Text size="sm" className="written">
                    {String(row['body'])}
                  </Text>
                </div>
              )
            })}
          </Stack>
          <form
            onSubmit={(event) => {
              event.preventDefault()
              send.mutate()
            }}
          >
            <Textarea
              mt="md"
              label="Write as the product"
              rows={2}
              value={text}
              onChange={(event) => setText(event.currentTarget.value)}
            />
            {send.error && <Failure error={send.error} />}
            <Group justify="flex-end" mt="xs">
              <Button type="submit" disabled={text.trim() === ''} loading={send.isPending}>
                Send
              </Button>
            </Group>
          </form>
        </Card>
      </div>
      <Confirm
        title="Delete the message"
        verb="Delete"
        said="The message is deleted."
        isOpen={removed !== undefined}
        onClose={() => setRemoved(undefined)}
        run={() => call(adminDeleteMessage, { path: { ...path, conversationId, messageId: String(removed?.['id']) } })}
      >
        Nobody sees it any more: “{String(removed?.['body'] ?? '').slice(0, 120)}”
      </Confirm>
    </>
  )
}
