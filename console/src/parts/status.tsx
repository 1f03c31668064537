import { ActionIcon, Badge, Code, CopyButton, Group, Tooltip } from '@mantine/core'
import { Check, Copy } from 'lucide-react'

const colours: Readonly<Record<string, string>> = {
  good: 'leaf',
  bad: 'red',
  warn: 'yellow',
  none: 'gray',
}
/** Words of states, by what they mean to a person. Whatever is not here is grey. */
const meanings: Readonly<Record<string, keyof typeof colours>> = {
  active: 'good',
  delivered: 'good',
  sent: 'good',
  succeeded: 'good',
  success: 'good',
  completed: 'good',
  verified: 'good',
  approved: 'good',
  connected: 'good',
  live: 'good',
  open: 'good',
  granted: 'good',
  running: 'warn',
  pending: 'warn',
  scheduled: 'warn',
  sending: 'warn',
  queued: 'warn',
  paused: 'warn',
  retrying: 'warn',
  escalated: 'warn',
  draft: 'none',
  failed: 'bad',
  dead: 'bad',
  rejected: 'bad',
  banned: 'bad',
  expired: 'bad',
  revoked: 'bad',
  cancelled: 'none',
  broken: 'bad',
  bounced: 'bad',
}

/** A state as a word with its colour, never a colour alone. */
export const Status = ({ value, meaning }: { value: string; meaning?: keyof typeof colours }) => (
  <Badge
    color={colours[meaning ?? meanings[value.toLowerCase()] ?? 'none'] ?? 'gray'}
    styles={{ label: { color: 'var(--mantine-color-text)', fontWeight: 500 } }}
  >
    {value.replace(/_/g, ' ')}
  </Badge>
)
Status.words = ({ value }: Parameters<typeof Status>[0]) => value.replace(/_/g, ' ')

/** Copies a text, and says so. */
export const Copied = ({ value, label = 'Copy' }: { value: string; label?: string }) => (
  <CopyButton value={value}>
    {({ copied, copy }) => (
      <Tooltip label={copied ? 'Copied' : label}>
        <ActionIcon variant="subtle" color="gray" size="sm" aria-label={copied ? 'Copied' : label} onClick={copy}>
          {copied ? <Check size={14} /> : <Copy size={14} />}
        </ActionIcon>
      </Tooltip>
    )}
  </CopyButton>
)

/** An identifier, shortened in its middle, to be copied whole. */
export const Id = ({ value }: { value: string }) => (
  <Group gap={2} wrap="nowrap" display="inline-flex">
    <Tooltip label={value}>
      <Code tabIndex={0}>{value.length > 16 ? `${value.slice(0, 8)}…${value.slice(-4)}` : value}</Code>
    </Tooltip>
    <Copied value={value} label="Copy the id" />
  </Group>
)
