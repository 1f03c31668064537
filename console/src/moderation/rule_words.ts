import type { ModerationRule } from '../../../sdk/src/generated/schemas.ts'
import type { Row } from '../api.ts'

export type Type = 'keyword' | 'link' | 'regex' | 'rate' | 'new_account' | 'report_threshold'
export const types: Readonly<Record<Type, readonly [string, string, Row]>> = {
  keyword: ['Words', 'Catches words and phrases, however they are written', { words: [], match: 'word' }],
  link: ['Links', 'Catches links to other sites', { allow_domains: [] }],
  regex: ['Pattern', 'Catches what a regular expression matches', { pattern: '' }],
  rate: ['Too much', 'Catches what one user writes beyond a number', { max: 10, window_seconds: 60 }],
  new_account: ['New accounts', 'Catches what users write who joined lately', { max_age_hours: 24 }],
  report_threshold: ['Many reports', 'Hides what several users reported', { count: 3, window_hours: 24 }],
}
export const places = [
  ['message', 'Messages'],
  ['display_name', 'Names of users'],
  ['group_name', 'Names of groups'],
  ['feed_entry', 'Feed entries'],
  ['collection_row', 'Rows of collections'],
  ['review', 'Reviews'],
  ['content', 'Content'],
  ['ai_input', 'What is asked of AI'],
  ['ai_output', 'What AI answers'],
] as const
export const subjects = [
  ['user', 'Users'],
  ['message', 'Messages'],
  ['media', 'Files'],
  ['group', 'Groups'],
  ['feed_entry', 'Feed entries'],
  ['collection_row', 'Rows of collections'],
  ['review', 'Reviews'],
  ['content', 'Content'],
] as const
export const actionWords: Readonly<Record<string, string>> = {
  queue: 'Ask a moderator',
  hide: 'Hide until then',
  block: 'Refuse it',
}
export const placeWords = new Map<string, string>([...subjects, ...places])

/** What a rule does, in a sentence. */
export const ruleInWords = ({ rule_type, config }: Pick<ModerationRule, 'rule_type' | 'config'>): string => {
  const row = config as Row
  const words = (row['words'] as readonly string[] | undefined) ?? []
  switch (rule_type as Type) {
    case 'keyword':
      return `${words.slice(0, 4).join(', ')}${words.length > 4 ? ` and ${words.length - 4} more` : ''}`
    case 'link':
      return `links, except to ${((row['allow_domains'] as readonly string[]) ?? []).join(', ') || 'nowhere'}`
    case 'regex':
      return `the pattern ${row['pattern']}`
    case 'rate':
      return `more than ${row['max']} in ${row['window_seconds']} seconds`
    case 'new_account':
      return `accounts younger than ${row['max_age_hours']} hours`
    case 'report_threshold':
      return `${row['count']} reports in ${row['window_hours']} hours`
  }
}
