import { Alert, Anchor, Button, Center, Group, Skeleton, Stack, Text, Title, Tooltip } from '@mantine/core'
import { type NotificationData, notifications } from '@mantine/notifications'
import { useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { CircleAlert, CloudOff, SearchX } from 'lucide-react'
import { type ReactNode, useEffect, useState } from 'react'
import { isTemporary, TrellisError } from '../api.ts'

/** What a person reads of an error: the sentence of the server, or why none came. */
export const sentenceOf = (error: unknown): string => (error instanceof Error ? error.message : 'Something went wrong.')

/** What could not be loaded or done, with a way on. A refusal that is temporary can be tried again. */
export const Failure = ({ error, onRetry }: { error: unknown; onRetry?: () => unknown }) => {
  const known = error instanceof TrellisError ? error : undefined
  const isMissing = known?.status === 404
  return (
    <Alert
      color={isMissing ? 'gray' : 'red'}
      icon={isTemporary(error) ? <CloudOff size={18} /> : <CircleAlert size={18} />}
      title={
        isMissing ? 'It is not here (any more)' : isTemporary(error) ? 'The server does not answer' : 'That was refused'
      }
      role="alert"
      mb="sm"
    >
      <Text size="sm">{sentenceOf(error)}</Text>
      <Group gap="md" mt={6}>
        {onRetry && !isMissing && (
          <Button size="compact-sm" variant="default" onClick={() => onRetry()}>
            Try again
          </Button>
        )}
        {known?.requestId && (
          <Text size="xs" c="dimmed">
            Code {known.code}, request {known.requestId}
          </Text>
        )}
      </Group>
    </Alert>
  )
}

/** A page that does not exist. */
export const Missing = () => (
  <Center mih="60vh" component="main">
    <Stack align="center" gap="xs">
      <SearchX size={28} color="var(--mantine-color-dimmed)" />
      <Title order={1} id="title" tabIndex={-1}>
        There is no such page
      </Title>
      <Anchor component={Link} to="/" size="sm">
        All projects
      </Anchor>
    </Stack>
  </Center>
)

/** What a list or a chart is for where it has nothing yet, and what to do first. */
export const Empty = ({
  icon,
  title,
  action,
  children,
}: {
  icon?: ReactNode
  title: string
  action?: ReactNode
  children?: ReactNode
}) => (
  <Center py={48} px="md" data-empty>
    <Stack align="center" gap={8} maw={460}>
      {icon && <div className="empty-icon">{icon}</div>}
      <Text fw={600}>{title}</Text>
      {children && (
        <Text size="sm" c="dimmed" ta="center" component="div">
          {children}
        </Text>
      )}
      {action}
    </Stack>
  </Center>
)

/** Rows of the height that a list will have. */
export const Rows = ({ count = 8, height = 44 }: { count?: number; height?: number }) => (
  <Stack gap={1} role="status" aria-busy="true" aria-label="Loading">
    {Array.from({ length: count }, (_, row) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: rows without content
      <Skeleton key={row} h={height - 1} radius={0} />
    ))}
  </Stack>
)

const units: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['year', 31_557_600],
  ['month', 2_629_800],
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
]
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' })
const exact = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium' })

export const ago = (at: string | number | Date, now = Date.now()): string => {
  const seconds = (new Date(at).getTime() - now) / 1000
  const [unit, size] = units.find(([, length]) => Math.abs(seconds) >= length) ?? ['second', 1]
  return unit === 'second'
    ? seconds > 0
      ? 'in a moment'
      : 'just now'
    : relative.format(Math.round(seconds / size), unit)
}

/** A time to the second, for a tooltip. */
export const exactly = (at: string): string => exact.format(new Date(at))

/** A time as people say it, with the exact one for the pointer and the keyboard. */
export const When = ({ at, none = '—' }: { at: string | null | undefined; none?: string }) => {
  const [, tick] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 30_000)
    return () => clearInterval(timer)
  }, [])
  if (!at) return <>{none}</>
  return (
    <Tooltip label={exact.format(new Date(at))}>
      <time dateTime={at} tabIndex={0}>
        {ago(at)}
      </time>
    </Tooltip>
  )
}

When.words = ({ at, none = '—' }: Parameters<typeof When>[0]) => (at ? undefined : none)

/** A day as `26 Nov`. */
export const dayOf = (date: string): string =>
  new Date(date.length === 10 ? `${date}T12:00Z` : date).toLocaleDateString('en', { day: 'numeric', month: 'short' })

const numbers = new Intl.NumberFormat('en')
export const count = (value: number | string | null | undefined): string =>
  value === null || value === undefined ? '—' : numbers.format(Number(value))
/** `1 user`, `2 users`. */
export const counted = (value: number, noun: string, plural = `${noun}s`): string =>
  `${numbers.format(value)} ${value === 1 ? noun : plural}`

/** How many notices stand beside each other. Mantine would keep a further one back until one of these goes, and with it its Undo. */
const mostNotices = 4
let notices: readonly { readonly id: string; readonly hasUndo: boolean }[] = []

/** Shows a notice at once. Where there are too many, the oldest one without Undo goes, else the oldest. */
const show = (id: string, hasUndo: boolean, notice: NotificationData) => {
  const oldest = notices.length < mostNotices ? undefined : (notices.find((one) => !one.hasUndo) ?? notices[0])
  if (oldest) notifications.hide(oldest.id)
  notices = [...notices.filter((one) => one !== oldest), { id, hasUndo }]
  notifications.show({
    ...notice,
    id,
    closeButtonProps: { 'aria-label': 'Close' },
    onClose: () => {
      notices = notices.filter((one) => one.id !== id)
    },
  })
}

/** Says that something was done, with a way back where there is one. Answers the id of the toast. */
export const done = (message: string, undo?: () => Promise<unknown>): string => {
  const id = crypto.randomUUID()
  show(id, undo !== undefined, {
    color: 'leaf',
    autoClose: undo ? 10_000 : 5000,
    message: undo ? (
      <Group justify="space-between" wrap="nowrap">
        <span>{message}</span>
        <Button
          size="compact-sm"
          variant="default"
          flex="none"
          onClick={() => {
            notifications.hide(id)
            undo().then(() => done('Undone.'), failed)
          }}
        >
          Undo
        </Button>
      </Group>
    ) : (
      message
    ),
  })
  return id
}

/** Says that something was refused, where no form shows it. */
export const failed = (error: unknown): void => {
  show(crypto.randomUUID(), false, {
    color: 'red.8',
    title: isTemporary(error) ? 'The server does not answer' : 'That was refused',
    message: sentenceOf(error),
    autoClose: 10_000,
  })
}

/** Reads everything that is shown again, after something was written. */
export const useRefresh = () => {
  const client = useQueryClient()
  return () => client.invalidateQueries()
}
