import { Button } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { Pause as PauseIcon, Play } from 'lucide-react'
import { callAny } from '../../api.ts'
import { useProject } from '../page.tsx'
import { done, failed, useRefresh } from '../states.tsx'

/** Switches a definition off and on again, with a way back. */
export const Pause = ({
  operation,
  path,
  title,
  isActive,
}: {
  operation: string
  path: Readonly<Record<string, string>>
  title: string
  isActive: boolean
}) => {
  const { path: project } = useProject()
  const refresh = useRefresh()
  const set = (is_active: boolean) => callAny(operation, { path: { ...project, ...path }, body: { is_active } })
  const work = useMutation({
    mutationFn: () => set(!isActive),
    onSuccess: async () => {
      done(isActive ? `“${title}” is paused.` : `“${title}” is active again.`, () => set(isActive).then(refresh))
      await refresh()
    },
    onError: failed,
  })
  return (
    <Button
      variant="default"
      leftSection={isActive ? <PauseIcon size={15} /> : <Play size={15} />}
      loading={work.isPending}
      onClick={() => work.mutate()}
    >
      {isActive ? 'Pause' : 'Resume'}
    </Button>
  )
}
