import { Button, Group, Stack, Text, Textarea, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { Send } from 'lucide-react'
import { useState } from 'react'
import { callAny } from '../api.ts'
import { Card, useProject } from '../parts/page.tsx'
import { count, Failure, useRefresh } from '../parts/states.tsx'
import { contextOf, dollars, type Prompt, placeholdersOf } from './data.ts'

type Message = { readonly role: 'user' | 'assistant'; readonly content: string; readonly about?: string }
type Answer = {
  readonly output?: string
  readonly object?: unknown
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number; readonly cost_usd: number }
  readonly finish_reason: string
}

/** Messages of a talk, of whom each is. */
export const Talk = ({ messages }: { messages: readonly Message[] }) => (
  <ol className="talk">
    {messages.map(({ role, content, about }, at) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: a message is known by its place
      <li key={at} data-role={role}>
        <span className="cell-sub">{role === 'user' ? 'User' : 'Model'}</span>
        <div className="talk-text">{content}</div>
        {about && <span className="cell-sub">{about}</span>}
      </li>
    ))}
  </ol>
)

/** A talk with a prompt, as an app would have it. */
export const TryIt = ({ prompt }: { prompt: Prompt }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const [values, setValues] = useState<Readonly<Record<string, string>>>({})
  const [messages, setMessages] = useState<readonly Message[]>([])
  const [text, setText] = useState('')
  const work = useMutation({
    mutationFn: async (asked: readonly Message[]) => {
      const begun = Date.now()
      const { data } = await callAny('POST /v1/admin/projects/{projectId}/ai/prompts/{name}/invoke', {
        path: { ...path, name: prompt.name },
        body: {
          context: contextOf(values),
          messages: asked.map(({ role, content }) => ({ role, content })),
        },
      })
      return { answer: data as Answer, seconds: (Date.now() - begun) / 1000 }
    },
    onSuccess: async ({ answer, seconds }, asked) => {
      const { usage, finish_reason } = answer
      const about = [
        `${seconds.toFixed(1)} s`,
        `${count(usage.input_tokens)} + ${count(usage.output_tokens)} tokens`,
        dollars(usage.cost_usd),
        finish_reason === 'length' ? 'cut off at the longest answer' : '',
      ]
      setMessages([
        ...asked,
        {
          role: 'assistant',
          content: answer.output ?? '',
          about: about.filter((part) => part !== '').join(' · '),
        },
      ])
      await refresh()
    },
    // what was asked comes back, to be sent again
    onError: (_, asked) => {
      setMessages(asked.slice(0, -1))
      setText(asked.at(-1)?.content ?? '')
    },
  })
  const send = () => {
    if (text.trim() === '' || work.isPending) return
    const asked = [...messages, { role: 'user' as const, content: text }]
    setMessages(asked)
    setText('')
    work.mutate(asked)
  }
  const placeholders = placeholdersOf(prompt.system_prompt)
  return (
    <Card
      title="Try it"
      actions={
        messages.length > 0 && (
          <Button size="compact-xs" variant="default" onClick={() => setMessages([])}>
            Begin again
          </Button>
        )
      }
    >
      <Stack gap="md">
        {placeholders.length > 0 && (
          <div className="pair">
            {placeholders.map(({ name, fallback }) => (
              <TextInput
                key={name}
                label={name}
                placeholder={fallback || 'nothing'}
                value={values[name] ?? ''}
                onChange={(event) => setValues({ ...values, [name]: event.currentTarget.value })}
                autoComplete="off"
              />
            ))}
          </div>
        )}
        {messages.length > 0 && <Talk messages={messages} />}
        {work.isPending && (
          <Text size="sm" c="dimmed" role="status">
            The model answers…
          </Text>
        )}
        {work.error && <Failure error={work.error} />}
        <form
          onSubmit={(event) => {
            event.preventDefault()
            send()
          }}
        >
          <Textarea
            label="Message"
            placeholder="What a user would ask"
            autosize={false}
            rows={3}
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
                event.preventDefault()
                send()
              }
            }}
          />
          <Group justify="space-between" mt="sm">
            <Text size="xs" c="dimmed">
              A call costs what a call of an app costs. Ctrl-Enter sends
            </Text>
            <Button
              type="submit"
              leftSection={<Send size={15} />}
              loading={work.isPending}
              disabled={text.trim() === ''}
            >
              Send
            </Button>
          </Group>
        </form>
      </Stack>
    </Card>
  )
}
