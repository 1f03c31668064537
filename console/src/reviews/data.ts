export type Review = {
  readonly id: string
  readonly app_user_id: string
  readonly subject_type: string
  readonly subject_id: string
  readonly rating: number
  readonly title: string | null
  readonly body: string | null
  readonly status: string
  readonly helpful_count: number
  readonly reply: { readonly body: string; readonly at: string } | null
  readonly locale: string | null
  readonly app_version: string | null
  readonly created_at: string
  readonly updated_at: string
  readonly user: { readonly display_name: string | null }
}

export const meanings: Readonly<Record<string, 'good' | 'warn' | 'bad'>> = {
  pending: 'warn',
  published: 'good',
  hidden: 'bad',
  rejected: 'bad',
}
