import {
  Alert,
  Button,
  Group,
  SegmentedControl,
  Select,
  Stack,
  Stepper,
  Text,
  Textarea,
  TextInput,
} from '@mantine/core'
import { DateTimePicker } from '@mantine/dates'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { listSegments } from '../../../sdk/src/generated/admin.ts'
import { call, callAny, type Row } from '../api.ts'
import { Card, Facts, PageHead, useAddress, useOpen, useProject } from '../parts/page.tsx'
import { count, counted, done, Failure } from '../parts/states.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'
import { useProjects } from '../shell/shell.tsx'
import { NotConnected } from './connected.tsx'
import { Phone } from './phone.tsx'

type Draft = {
  readonly name: string
  readonly segmentId: string | undefined
  readonly title: string
  readonly body: string
  readonly link: string
  readonly when: 'now' | 'later'
  readonly at: Date | undefined
}
const empty: Draft = {
  name: '',
  segmentId: undefined,
  title: '',
  body: '',
  link: '',
  when: 'now',
  at: undefined,
}
/** What stands for no segment in the list of segments. */
const everybody = 'everybody'
const campaigns = 'POST /v1/admin/projects/{projectId}/push/campaigns'

const bodyOf = (draft: Draft) => ({
  name: draft.name || draft.title,
  audience: draft.segmentId ? { segment_id: draft.segmentId } : { all: true },
  message: { title: draft.title, body: draft.body, ...(draft.link ? { deep_link: draft.link } : {}) },
})

type Preview = {
  readonly audience_count: number
  readonly is_estimate: boolean
  readonly margin: number
  readonly devices: number
  readonly skipped: Readonly<Record<'no_token' | 'opted_out' | 'quiet' | 'capped', number>>
}

/** Whom a campaign reaches, and who is left out and why. */
const Reach = ({ preview }: { preview: Preview }) => (
  <Facts
    facts={[
      ['Users', `${preview.is_estimate ? 'about ' : ''}${count(preview.audience_count)}`],
      ['Devices', count(preview.devices)],
      ['Without a device', count(preview.skipped.no_token)],
      ['Do not want push', count(preview.skipped.opted_out)],
      ['In quiet hours', count(preview.skipped.quiet)],
      ['Had enough already', count(preview.skipped.capped)],
    ]}
  />
)

/** A push campaign in three steps: whom it reaches, what it says, when it goes out. */
export const Page = () => {
  const { path, projectId } = useProject()
  const [{ step = '0', segment }, setAddress] = useAddress<'step' | 'segment'>()
  const [draft, setDraft] = useState<Draft>({ ...empty, segmentId: segment })
  const [made, setMade] = useState<string>()
  const [preview, setPreview] = useState<Preview>()
  const open = useOpen()
  const app = useProjects().data?.data.find(({ id }) => id === projectId)?.name ?? ''
  const segments = useQuery({
    queryKey: ['segments', projectId],
    queryFn: () => call(listSegments, { path, query: { limit: 100 } }),
  })
  const set = (change: Partial<Draft>) => setDraft((before) => ({ ...before, ...change }))
  /** The draft on the server, so that it can be previewed: made once, changed afterwards. */
  const save = async (): Promise<string> => {
    const operation = made ? `${campaigns.replace('POST', 'PATCH')}/{campaignId}` : campaigns
    const { data } = await callAny(operation, {
      path: { ...path, ...(made ? { campaignId: made } : {}) },
      body: bodyOf(draft),
    })
    const { id } = data as { id: string }
    setMade(id)
    return id
  }
  const look = useMutation({
    mutationFn: async () => {
      const campaignId = await save()
      const { data } = await callAny(`${campaigns}/{campaignId}/preview`, { path: { ...path, campaignId }, body: {} })
      setPreview(data as Preview)
      await setAddress({ step: '2' })
    },
  })
  const send = useMutation({
    mutationFn: async () => {
      const campaignId = await save()
      const body: Row = draft.when === 'later' && draft.at ? { send_at: draft.at.toISOString() } : {}
      await callAny(`${campaigns}/{campaignId}/schedule`, { path: { ...path, campaignId }, body })
      return campaignId
    },
    onSuccess: (campaignId) => {
      done(draft.when === 'now' ? 'The campaign goes out.' : 'The campaign is scheduled.')
      void open(`push/${campaignId}`)
    },
  })
  useUnsaved(draft, send)
  const chosen = segments.data?.data.find(({ id }) => id === draft.segmentId)
  const isWritten = draft.title !== '' && draft.body !== ''
  const to = (next: number) => setAddress({ step: String(next) })
  return (
    <>
      <PageHead title="New push campaign" back={{ title: 'Push', to: 'push' }} />
      <NotConnected />
      <div className="split">
        <Card>
          <Stepper active={Number(step)} onStepClick={(next) => next < 2 && to(next)} size="sm">
            <Stepper.Step label="Whom">
              <Stack mt="md">
                <Select
                  label="Whom it reaches"
                  searchable
                  allowDeselect={false}
                  data={[
                    { value: everybody, label: 'All users' },
                    ...(segments.data?.data.map(({ id, name }) => ({ value: id, label: name })) ?? []),
                  ]}
                  value={draft.segmentId ?? everybody}
                  onChange={(next) => set({ segmentId: next === everybody ? undefined : (next ?? undefined) })}
                  description={
                    chosen
                      ? `${counted(chosen.member_count ?? 0, 'user')} in the segment now`
                      : 'Every user who takes push'
                  }
                />
                <Group justify="flex-end">
                  <Button onClick={() => to(1)}>Next</Button>
                </Group>
              </Stack>
            </Stepper.Step>
            <Stepper.Step label="What">
              <form
                onSubmit={(event) => {
                  event.preventDefault()
                  look.mutate()
                }}
              >
                <Stack mt="md">
                  <TextInput
                    label="Title"
                    required
                    value={draft.title}
                    onChange={(event) => set({ title: event.currentTarget.value })}
                    description="{{display_name|friend}} is the user's name, or “friend”"
                  />
                  <Textarea
                    label="Text"
                    required
                    rows={3}
                    value={draft.body}
                    onChange={(event) => set({ body: event.currentTarget.value })}
                  />
                  <TextInput
                    label="Opens"
                    placeholder="myapp://lessons"
                    value={draft.link}
                    onChange={(event) => set({ link: event.currentTarget.value })}
                    description="Where a tap leads in your app"
                  />
                  <TextInput
                    label="Name of the campaign"
                    placeholder={draft.title}
                    value={draft.name}
                    onChange={(event) => set({ name: event.currentTarget.value })}
                    description="Only you see it"
                  />
                  {look.error && <Failure error={look.error} />}
                  <Group justify="flex-end">
                    <Button variant="default" onClick={() => to(0)}>
                      Back
                    </Button>
                    <Button type="submit" disabled={!isWritten} loading={look.isPending}>
                      Next
                    </Button>
                  </Group>
                </Stack>
              </form>
            </Stepper.Step>
            <Stepper.Step label="When">
              <Stack mt="md">
                <SegmentedControl
                  aria-label="When"
                  value={draft.when}
                  onChange={(when) => set({ when: when as 'now' })}
                  data={[
                    { value: 'now', label: 'Now' },
                    { value: 'later', label: 'Later' },
                  ]}
                />
                {draft.when === 'later' && (
                  <DateTimePicker
                    label="At"
                    valueFormat="D MMM YYYY, HH:mm"
                    minDate={new Date()}
                    value={draft.at ?? null}
                    onChange={(at) => set({ at: at ? new Date(at) : undefined })}
                  />
                )}
                {preview && <Reach preview={preview} />}
                {preview?.devices === 0 && (
                  <Alert color="yellow" title="It reaches no device">
                    None of these users has a device that takes push. It stands in their inbox.
                  </Alert>
                )}
                {send.error && <Failure error={send.error} />}
                <Group justify="flex-end">
                  <Button variant="default" onClick={() => to(1)}>
                    Back
                  </Button>
                  <Button
                    onClick={() => send.mutate()}
                    loading={send.isPending}
                    disabled={draft.when === 'later' && !draft.at}
                  >
                    {draft.when === 'now' ? 'Send now' : 'Schedule'}
                  </Button>
                </Group>
              </Stack>
            </Stepper.Step>
          </Stepper>
        </Card>
        <div className="column">
          <Phone title={draft.title} body={draft.body} app={app} />
          <Text size="xs" c="dimmed" ta="center">
            {chosen ? `To “${chosen.name}”` : 'To all users'}
          </Text>
        </div>
      </div>
    </>
  )
}
