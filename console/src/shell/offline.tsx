import { Alert } from '@mantine/core'
import { CloudOff } from 'lucide-react'
import { useSyncExternalStore } from 'react'
import { outage } from '../outage.ts'

/** Says that the server cannot be reached, until an answer comes again. Forms keep what was typed. */
export const Offline = () => {
  const isAway = useSyncExternalStore(outage.subscribe, outage.isOn)
  if (!isAway) return null
  return (
    <Alert color="yellow" icon={<CloudOff size={18} />} title="The server cannot be reached" mb="md" role="status">
      What you typed stays here. The console goes on when the server answers again.
    </Alert>
  )
}
