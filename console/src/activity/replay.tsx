import { MultiSelect, Stack, Switch, Text } from '@mantine/core'
import { DateTimePicker } from '@mantine/dates'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { replayEvents } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { Drawer } from '../parts/drawer.tsx'
import { FormFoot } from '../parts/form_foot.tsx'
import { useAddress, useProject } from '../parts/page.tsx'
import { done, useRefresh } from '../parts/states.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'
import type { Operation } from './operation.tsx'

export const targets = ['streaks', 'xp', 'achievements', 'challenges', 'leaderboards']

const ReplayForm = ({ onClose }: { onClose: () => void }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const [, setAddress] = useAddress<'replay' | 'open'>()
  const [since, setSince] = useState<string | null>(() => new Date(Date.now() - 7 * 864e5).toISOString())
  const [chosen, setChosen] = useState<string[]>([])
  const [isTrial, setTrial] = useState(true)
  const work = useMutation({
    mutationFn: () =>
      call(replayEvents, {
        path,
        body: {
          since: new Date(since ?? 0).toISOString(),
          ...(chosen.length > 0 ? { targets: chosen } : {}),
          dry_run: isTrial,
        },
      }),
    onSuccess: async ({ data }) => {
      done(isTrial ? 'The trial runs.' : 'The replay runs.')
      await setAddress({ replay: undefined, open: (data as unknown as Operation).operation_id })
      await refresh()
    },
  })
  useUnsaved([since, chosen, isTrial], work)
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        work.mutate()
      }}
    >
      <Stack gap="md">
        <Text size="sm" c="dimmed">
          Counts stored events again for what was defined later or became easier. It only adds, and gives no reward
          twice.
        </Text>
        <DateTimePicker
          label="Events since"
          required
          valueFormat="D MMM YYYY, HH:mm"
          value={since ? new Date(since) : null}
          onChange={setSince}
        />
        <MultiSelect
          label="For"
          description="All of them if nothing is chosen"
          data={targets}
          value={chosen}
          onChange={setChosen}
          clearable
        />
        <Switch
          label="Only try it"
          description="Shows what would change, and writes nothing"
          checked={isTrial}
          onChange={(event) => setTrial(event.currentTarget.checked)}
        />
        <FormFoot
          verb={isTrial ? 'Try the replay' : 'Replay events'}
          work={work}
          onCancel={onClose}
          isDisabled={!since}
        />
      </Stack>
    </form>
  )
}

/** The drawer in which stored events are counted again. */
export const Replay = () => {
  const [{ replay }, setAddress] = useAddress<'replay'>()
  const close = () => setAddress({ replay: undefined })
  return (
    <Drawer opened={replay === 'yes'} onClose={close} title="Replay events">
      {replay === 'yes' && <ReplayForm onClose={close} />}
    </Drawer>
  )
}
