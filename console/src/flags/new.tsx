import { SegmentedControl, Stack, Switch, Text, Textarea, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { createFlag } from '../../../sdk/src/generated/admin.ts'
import { call, TrellisError } from '../api.ts'
import { FormFoot } from '../parts/form_foot.tsx'
import { Card, PageHead, useOpen, useProject } from '../parts/page.tsx'
import { done, useRefresh } from '../parts/states.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'
import { Percentage } from './percentage.tsx'
import { ValueInput } from './value_input.tsx'
import { words } from './words.ts'

const empty: Readonly<Record<string, unknown>> = { boolean: false, string: '', number: 0, json: {} }

/** A new flag: its name, what it says, and with how many users it begins. */
export const Page = () => {
  const { path } = useProject()
  const open = useOpen()
  const refresh = useRefresh()
  const [name, setName] = useState('')
  const [typedKey, setKey] = useState<string>()
  const [description, setDescription] = useState('')
  const [type, setType] = useState('boolean')
  const [value, setValue] = useState<unknown>(false)
  const [share, setShare] = useState(0)
  const [isOn, setOn] = useState(true)
  const key =
    typedKey ??
    name
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '_')
      .replace(/^[^a-z]+|_$/g, '')
  const work = useMutation({
    mutationFn: () =>
      call(createFlag, {
        path,
        body: {
          key,
          name,
          ...(description ? { description } : {}),
          value_type: type as 'boolean',
          default_value: value,
          is_enabled: isOn,
          ...(type === 'boolean' && share > 0 ? { rules: [{ value: true, percentage: share }] } : {}),
        } as never,
      }),
    onSuccess: async () => {
      done(`The flag “${name}” is there.`)
      void open(`flags/${key}`)
      await refresh()
    },
  })
  useUnsaved([name, typedKey, description, type, value, share, isOn], work)
  const field = work.error instanceof TrellisError ? work.error.details?.['field'] : undefined
  return (
    <>
      <PageHead
        title="New flag"
        about="A switch in your app that you turn from here"
        back={{ title: 'Flags', to: 'flags' }}
      />
      <form
        className="narrow"
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          if (name && key) work.mutate()
        }}
      >
        <Stack gap="md">
          <Card title="What it is">
            <Stack gap="md">
              <div className="pair">
                <TextInput
                  label="Name"
                  required
                  placeholder="such as New checkout"
                  maxLength={200}
                  value={name}
                  onChange={(event) => setName(event.currentTarget.value)}
                  autoComplete="off"
                />
                <TextInput
                  label="Key"
                  description="What your app asks for; it never changes"
                  required
                  value={key}
                  error={field === 'key' && work.error?.message}
                  onChange={(event) => setKey(event.currentTarget.value)}
                  autoComplete="off"
                  inputWrapperOrder={['label', 'input', 'description', 'error']}
                />
              </div>
              <Textarea
                label="Description"
                description="What it switches, and when it can go"
                rows={2}
                value={description}
                maxLength={2000}
                onChange={(event) => setDescription(event.currentTarget.value)}
              />
            </Stack>
          </Card>
          <Card title="What it says">
            <Stack gap="md">
              <div className="scroll-x">
                <SegmentedControl
                  aria-label="What it says"
                  value={type}
                  onChange={(next) => {
                    setType(next)
                    setValue(empty[next])
                  }}
                  data={Object.entries(words.type).map(([kind, label]) => ({ value: kind, label }))}
                />
              </div>
              {type === 'boolean' ? (
                <div>
                  <div className="field-label">On for</div>
                  <Percentage value={share} onCommit={setShare} />
                </div>
              ) : (
                <ValueInput key={type} label="Everyone gets" type={type} value={value} onChange={setValue} />
              )}
              <Switch
                label="The flag is on"
                description="While it is off, everyone gets what they get without it"
                checked={isOn}
                onChange={(event) => setOn(event.currentTarget.checked)}
              />
              <Text size="sm" c="dimmed">
                Rules for segments, properties, platforms and versions come on its page.
              </Text>
            </Stack>
          </Card>
          <FormFoot verb="Create flag" work={work} onCancel={() => open('flags')} isDisabled={!name || !key} />
        </Stack>
      </form>
    </>
  )
}
