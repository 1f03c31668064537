import { Alert, Button, Group, Text } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { callAny, type Row } from '../api.ts'
import { useAddress, useProject } from '../parts/page.tsx'
import { Failure, useRefresh } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { base } from './plan_data.ts'

/** The apply that runs: what it does, and what waits for a yes. */
export const Running = ({ hash }: { hash: string | undefined }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const [{ operation }, setAddress] = useAddress<'operation'>()
  const { data } = useQuery({
    queryKey: ['operation', path.projectId, operation],
    enabled: operation !== undefined,
    refetchInterval: ({ state }) =>
      ['succeeded', 'failed', 'cancelled'].includes(String((state.data as Row | undefined)?.['status'])) ? false : 1500,
    queryFn: async () =>
      (
        await callAny('GET /v1/admin/projects/{projectId}/operations/{operationId}', {
          path: { ...path, operationId: operation },
        })
      ).data as Row,
  })
  const confirm = useMutation({
    mutationFn: () =>
      callAny(`POST ${base}/apply`, {
        path,
        body: { plan_hash: data?.['plan_hash'] ?? hash, confirm: data?.['plan_hash'] ?? hash },
      }),
    onSuccess: refresh,
  })
  if (!operation || !data) return null
  const status = String(data['status'])
  return (
    <Alert
      color={status === 'failed' ? 'red' : status === 'succeeded' ? 'leaf' : 'yellow'}
      title={
        <Group gap="xs">
          The apply <Status value={status} />
        </Group>
      }
      withCloseButton={!['queued', 'running'].includes(status)}
      closeButtonLabel="Close"
      onClose={() => setAddress({ operation: undefined })}
      role="status"
    >
      {data['failed_reason'] ? <Text size="sm">{String(data['failed_reason'])}</Text> : null}
      {data['confirm_required'] === true && (
        <Group justify="space-between">
          <Text size="sm">What is archived or detached, or made in a store, waits for your yes.</Text>
          <Button size="xs" color="red.8" loading={confirm.isPending} onClick={() => confirm.mutate()}>
            Go on with it
          </Button>
        </Group>
      )}
      {confirm.error && <Failure error={confirm.error} />}
    </Alert>
  )
}
