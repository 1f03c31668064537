import { Text } from '@mantine/core'
import { Sprout } from 'lucide-react'

/** What a user without the value reads: the word behind the bar of `{{display_name|friend}}`. */
const filled = (text: string) => text.replace(/\{\{[^{}|]*\|([^{}]*)\}\}/g, (_, word: string) => word.trim())

/** A message as the lock screen of a phone shows it. */
export const Phone = ({ title, body, app }: { title: string; body: string; app: string }) => (
  <figure className="phone" aria-label="On a phone">
    <div className="phone-time">9:41</div>
    <div className="phone-note">
      <div className="phone-app">
        <Sprout size={12} aria-hidden /> {app}
        <span>now</span>
      </div>
      <Text fw={600} size="sm" lineClamp={2}>
        {filled(title) || 'Title'}
      </Text>
      <Text size="sm" lineClamp={4}>
        {filled(body) || 'What the message says'}
      </Text>
    </div>
  </figure>
)
