import { Alert } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { CloudOff } from 'lucide-react'
import { useEffect, useState } from 'react'
import { isTemporary } from '../api.ts'

/** Says that the server cannot be reached, until an answer comes again. Forms keep what was typed. */
export const Offline = () => {
  const client = useQueryClient()
  const [isAway, setAway] = useState(false)
  useEffect(
    () =>
      client.getQueryCache().subscribe(({ query, type }) => {
        if (type !== 'updated') return
        const { status, error, fetchFailureReason } = query.state
        const reason = error ?? fetchFailureReason
        if (reason && isTemporary(reason)) setAway(true)
        else if (status === 'success') setAway(false)
      }),
    [client],
  )
  useEffect(() => {
    if (!isAway) return
    const timer = setInterval(async () => {
      const isThere = await fetch('/health').then(
        ({ ok }) => ok,
        () => false,
      )
      if (!isThere) return
      setAway(false)
      await client.invalidateQueries()
    }, 2000)
    return () => clearInterval(timer)
  }, [isAway, client])
  if (!isAway) return null
  return (
    <Alert color="yellow" icon={<CloudOff size={18} />} title="The server cannot be reached" mb="md" role="status">
      What you typed stays here. The console goes on when the server answers again.
    </Alert>
  )
}
