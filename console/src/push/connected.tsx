import { Alert, Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { listIntegrations } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { ProjectLink, useProject } from '../parts/page.tsx'

/** The providers that deliver push. */
const deliverers = new Set(['apns', 'fcm', 'log'])

/** Whether a provider of push is connected; undefined while that is asked. */
export const useConnected = (): boolean | undefined => {
  const { path } = useProject()
  const { data } = useQuery({
    queryKey: ['integrations', path.projectId],
    queryFn: () => call(listIntegrations, { path }),
  })
  return data?.data.some(({ provider, is_active }) => is_active && deliverers.has(provider))
}

/** Says first what a refusal would say last: nothing is delivered before a provider is connected. */
export const NotConnected = () =>
  useConnected() === false ? (
    <Alert color="yellow" title="No provider of push is connected" mb="md">
      Campaigns can be written, and go out once Apple's or Google's push is connected.
      <div>
        <Button component={ProjectLink} to="settings/integrations" size="compact-sm" variant="default" mt={8}>
          Connect one
        </Button>
      </div>
    </Alert>
  ) : null
